//! All tools of a session, by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use towline_agent::Fetch;
use towline_provider::{Call, ToolSpec};

use super::arguments::{Arguments, Need, Tool, Work};
use super::places::Places;
use super::walk::Patience;
use super::words::one_line;
use super::{Described, Outcome, OutputSink, ToolKind};
use super::{command, edit, fetch, list, read, search, write};

/// The longest title.
const LONGEST_TITLE: usize = 200;

/// Options of a session's tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ToolOptions {
    /// Whether web pages may be loaded, with permission.
    pub(crate) fetch: Fetch,
    /// Further directories that may be read, as absolute paths.
    pub(crate) dirs: Vec<PathBuf>,
    /// Environment variables that commands do not see, such as the key of the model's provider.
    pub(crate) hidden_env: Vec<String>,
}

/// The tools of a session.
#[derive(Debug)]
pub(crate) struct Toolbox {
    places: Arc<Places>,
    options: ToolOptions,
}

const ALL: [&Tool; 7] =
    [&read::TOOL, &write::TOOL, &edit::TOOL, &list::TOOL, &search::TOOL, &command::TOOL, &fetch::TOOL];

impl Toolbox {
    /// The tools of a session in `root`, an absolute path.
    pub(crate) fn new(root: &Path, options: ToolOptions) -> Self {
        Self { places: Arc::new(Places::new(root, &options.dirs)), options }
    }

    /// The descriptions of the tools for models.
    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        self.tools().map(Tool::spec).collect()
    }

    /// What a call is about to do; `None` for an unknown tool. Any arguments are accepted.
    pub(crate) fn describe(&self, call: &Call) -> Option<Described> {
        let text = |name: &str| call.input.get(name).and_then(Value::as_str);
        let tool = self.tool(&call.name)?;
        let path_field = tool.fields.iter().find(|field| field.name == "path");
        // If an optional path is left out, it is the workspace itself.
        let whole = path_field.filter(|field| field.need == Need::Optional).map(|_| ".");
        let named = path_field.and_then(|_| text("path").or(whole));
        let path = named.unwrap_or_default();
        let title = match tool.kind {
            ToolKind::Execute => text("command").unwrap_or("run").to_owned(),
            ToolKind::Fetch => text("url").unwrap_or("fetch").to_owned(),
            ToolKind::Search => format!("search {path} for {}", text("pattern").unwrap_or_default()),
            _ => match text("pattern") {
                Some(pattern) => format!("{} {path}: {pattern}", tool.name),
                None => format!("{} {path}", tool.name),
            },
        };
        Some(Described {
            title: one_line(&title, LONGEST_TITLE),
            kind: tool.kind,
            paths: named.map(|path| self.places.named(path)).into_iter().collect(),
            reach: tool.reach,
        })
    }

    /// Makes a call; `None` for an unknown tool. `progress` receives pieces of a command's output. Dropping the future ends
    /// what it started.
    pub(crate) async fn run(&self, call: &Call, progress: OutputSink<'_>) -> Option<Outcome> {
        let tool = self.tool(&call.name)?;
        let answer = match (tool.parse(&call.input), tool.work) {
            (Err(wrong), _) => Err(wrong),
            (Ok(arguments), Work::Files(work)) => self.aside(arguments, work).await,
            (Ok(arguments), Work::Fetch) => fetch::fetch(&arguments).await,
            (Ok(arguments), Work::Command) => {
                let hidden = &self.options.hidden_env;
                return Some(command::run(self.places.root(), hidden, &arguments, progress).await);
            }
        };
        Some(answer.map_or_else(Outcome::failed, Outcome::ok))
    }

    /// Runs a function on files on a thread that may block.
    async fn aside(
        &self,
        arguments: Arguments,
        work: fn(&Places, &Arguments, &Patience) -> Result<String, String>,
    ) -> Result<String, String> {
        let places = Arc::clone(&self.places);
        // Dropped with this future, so that an abandoned walk ends.
        let (patience, _give_up) = Patience::new();
        tokio::task::spawn_blocking(move || work(&places, &arguments, &patience))
            .await
            .unwrap_or_else(|error| Err(format!("the tool broke down: {error}")))
    }

    fn tools(&self) -> impl Iterator<Item = &'static Tool> {
        let without_fetch = self.options.fetch == Fetch::Off;
        ALL.into_iter().filter(move |tool| !(without_fetch && tool.kind == ToolKind::Fetch))
    }

    fn tool(&self, name: &str) -> Option<&'static Tool> {
        self.tools().find(|tool| tool.name == name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::{Reach, Status};
    use super::*;

    fn call(name: &str, input: Value) -> Call {
        Call { id: "1".to_owned(), name: name.to_owned(), input }
    }

    fn everything(root: &Path) -> Toolbox {
        Toolbox::new(root, ToolOptions { fetch: Fetch::On, ..ToolOptions::default() })
    }

    #[test]
    fn the_fetch_tool_exists_only_when_it_is_on() {
        let root = tempfile::tempdir().unwrap();
        let names = |toolbox: &Toolbox| toolbox.specs().into_iter().map(|spec| spec.name).collect::<Vec<_>>();
        let toolbox = Toolbox::new(root.path(), ToolOptions::default());
        assert_eq!(names(&toolbox), ["read", "write", "edit", "list", "search", "run"]);
        let fetches = call("fetch", json!({}));
        assert_eq!(toolbox.describe(&fetches), None);
        let toolbox = everything(root.path());
        assert_eq!(names(&toolbox), ["read", "write", "edit", "list", "search", "run", "fetch"]);
        assert!(toolbox.describe(&fetches).is_some());
    }

    #[test]
    fn calls_are_described_for_permission() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        let toolbox = everything(root.path());
        let paths = |path: &str| vec![real.join(path)];
        for (name, input, title, kind, paths, reach) in [
            ("read", json!({"path": "a"}), "read a", ToolKind::Read, paths("a"), Reach::Looks),
            ("list", json!({}), "list .", ToolKind::Read, vec![real.clone()], Reach::Looks),
            (
                "list",
                json!({"pattern": "*.rs"}),
                "list .: *.rs",
                ToolKind::Read,
                vec![real.clone()],
                Reach::Looks,
            ),
            (
                "search",
                json!({"pattern": "a b", "path": "src"}),
                "search src for a b",
                ToolKind::Search,
                paths("src"),
                Reach::Looks,
            ),
            (
                "write",
                json!({"path": "a", "content": ""}),
                "write a",
                ToolKind::Edit,
                paths("a"),
                Reach::Acts,
            ),
            ("edit", json!({"path": "a"}), "edit a", ToolKind::Edit, paths("a"), Reach::Acts),
            ("write", json!("{\"path\": "), "write", ToolKind::Edit, Vec::new(), Reach::Acts),
            ("run", json!({"command": "a\nb"}), "a⏎b", ToolKind::Execute, Vec::new(), Reach::Acts),
            ("fetch", json!({"url": "http://a"}), "http://a", ToolKind::Fetch, Vec::new(), Reach::Acts),
        ] {
            let expected = Described { title: title.to_owned(), kind, paths, reach };
            assert_eq!(toolbox.describe(&call(name, input)), Some(expected));
        }
        assert_eq!(toolbox.describe(&call("none", json!({}))), None);
    }

    #[tokio::test]
    async fn calls_are_made_by_their_names() {
        let root = tempfile::tempdir().unwrap();
        let toolbox = everything(root.path());
        for (name, input, expected) in [
            ("write", json!({"path": "a", "content": "one\n"}), Outcome::ok("Created a: 1 line, 4 bytes.")),
            (
                "edit",
                json!({"path": "a", "old": "one", "new": "two"}),
                Outcome::ok("Replaced 1 occurrence in a (line 1)."),
            ),
            ("read", json!({"path": "a"}), Outcome::ok("     1\ttwo\n")),
            ("list", json!({}), Outcome::ok("a")),
            ("search", json!({"pattern": "w"}), Outcome::ok("a:1:two\n(1 line)")),
            ("run", json!({"command": "cat a"}), Outcome::ok("two\n[exit code 0]")),
            ("run", json!({"command": "exit 3"}), Outcome::failed("(no output)\n[exit code 3]")),
            (
                "run",
                json!({}),
                Outcome::failed(
                    "run: `command` is missing. The right form is {\"command\": string, \"timeout\": integer \
                     (optional)}.",
                ),
            ),
            (
                "fetch",
                json!({"url": "ftp://a"}),
                Outcome::failed("`url` starts with ftp: and must start with http:// or https://"),
            ),
        ] {
            assert_eq!(toolbox.run(&call(name, input), &mut |_| {}).await, Some(expected));
        }
        assert_eq!(toolbox.run(&call("none", json!({})), &mut |_| {}).await, None);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let text = prop_oneof!["[a-z./~\u{0}\n-]{0,12}", ".{0,12}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        let name = prop_oneof![
            "path|offset|limit|content|old|new|all|pattern|include|command|timeout|url",
            ".{0,6}",
        ];
        leaf.prop_recursive(2, 16, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(name.clone(), inner, 0..6)
                    .prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_input_is_described_and_parsed(input in any_json(), name in "read|write|edit|list|search|run|fetch|.{0,5}") {
            let root = tempfile::tempdir().unwrap();
            let toolbox = everything(root.path());
            if let Some(described) = toolbox.describe(&call(&name, input.clone())) {
                prop_assert!(described.title.chars().count() <= LONGEST_TITLE + 40);
                prop_assert!(!described.title.contains(char::is_control));
                prop_assert!(described.paths.iter().all(|path| path.is_absolute()));
            }
            if let Some(tool) = toolbox.tool(&name) {
                let _ = tool.parse(&input);
            }
        }

        #[test]
        fn any_input_of_a_tool_for_files_has_an_outcome(
            input in any_json(),
            name in "read|write|edit|list|search",
        ) {
            let root = tempfile::tempdir().unwrap();
            std::fs::write(root.path().join("a"), "text\n").unwrap();
            let toolbox = everything(root.path());
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let outcome = runtime.block_on(toolbox.run(&call(&name, input), &mut |_| {})).unwrap();
            prop_assert!(!outcome.output.is_empty());
            prop_assert!(!outcome.output.contains("broke down"), "{}", outcome.output);
            prop_assert!(matches!(outcome.status, Status::Ok | Status::Failed));
        }
    }
}
