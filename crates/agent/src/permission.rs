//! Permission rules: `Tool` and `Tool(pattern)`. Deny comes before a person's permission, then allow, then the mode.
//!
//! Neighbours: agents that ask before they use a tool. The agent's own rule engine has usually applied the same lists
//! first. So a call that is unclear here is not allowed.

pub(crate) mod presets;
mod shell;

use std::borrow::Cow;

use serde_json::Value;
use sha2::{Digest, Sha256};
use towline_core::ToolCall;

use crate::settings::{AgentSettings, Permission};

/// An agent's rules.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    /// Calls that a person has permitted, once each.
    permitted: Vec<ToolCall>,
    otherwise: Permission,
}

/// The decision of the rules about a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ruling {
    pub(crate) verdict: Verdict,
    /// Who decided, as in the event of the decision.
    pub(crate) by: &'static str,
    /// The rule that decided, or the one that would allow a call without a rule.
    pub(crate) rule: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allow,
    Deny,
    /// A person decides.
    Ask,
}

/// The reply to a question of the model when there is no answer.
pub(crate) const NO_ANSWER: &str = "The operator does not answer this. Decide yourself, go on, and state the decision and \
                                    your reasons in your last message.";

/// How decisions name the rules.
pub(crate) const BY_RULE: &str = "rule";
/// How decisions name a person.
pub(crate) const BY_PERSON: &str = "person";

#[derive(Debug)]
struct Rule {
    text: String,
    tool: String,
    pattern: Option<String>,
}

/// How certain a match must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    /// For allowing: the rule covers the whole call.
    Strict,
    /// For denying: the rule may cover some of the call.
    Wary,
}

impl Rules {
    /// The rules of the settings, and the calls that a person has permitted.
    pub(crate) fn of(settings: &AgentSettings, permitted: &[ToolCall]) -> Self {
        let parse = |rules: &[String]| rules.iter().map(|rule| Rule::parse(rule)).collect();
        Self {
            allow: parse(&settings.allow),
            deny: parse(&settings.deny),
            permitted: permitted.to_vec(),
            otherwise: settings.permission,
        }
    }

    /// Whether `tool` may be used with `input`; `directory` is where the agent works.
    pub(crate) fn ruling(&mut self, tool: &str, input: &Value, directory: Option<&str>) -> Ruling {
        let by_rule = |verdict, rule| Ruling { verdict, by: BY_RULE, rule };
        if let Some(rule) = self.denying(tool, input, directory) {
            return by_rule(Verdict::Deny, rule);
        }
        if self.use_permission(tool, input) {
            return Ruling { verdict: Verdict::Allow, by: BY_PERSON, rule: would_allow(tool, input) };
        }
        let allowing = self.allow.iter().find(|rule| rule.matches(tool, input, directory, Care::Strict));
        if let Some(rule) = allowing {
            return by_rule(Verdict::Allow, rule.text.clone());
        }
        let preset = self.otherwise;
        if preset == Permission::Bypass || presets::allows(preset, tool, input, directory) {
            return by_rule(Verdict::Allow, format!("permission = {:?}", preset.name()));
        }
        let verdict = if preset == Permission::Ask { Verdict::Ask } else { Verdict::Deny };
        by_rule(verdict, would_allow(tool, input))
    }

    /// Whether a person has permitted this call. The permission is then used up.
    pub(crate) fn use_permission(&mut self, tool: &str, input: &Value) -> bool {
        if self.permitted.is_empty() {
            return false;
        }
        let call = tool_call(tool, input);
        let position = self.permitted.iter().position(|permitted| *permitted == call);
        position.map(|used| self.permitted.remove(used)).is_some()
    }

    /// The deny rule that covers this call.
    pub(crate) fn denying(&self, tool: &str, input: &Value, directory: Option<&str>) -> Option<String> {
        let rule = self.deny.iter().find(|rule| rule.matches(tool, input, directory, Care::Wary));
        rule.map(|rule| rule.text.clone())
    }
}

impl Rule {
    fn parse(text: &str) -> Self {
        let text = text.trim();
        let parts = text.strip_suffix(')').and_then(|open| open.split_once('('));
        let (tool, pattern) = match parts {
            Some((tool, pattern)) => (tool, (!matches!(pattern, "" | "*")).then(|| pattern.to_owned())),
            None => (text, None),
        };
        Self { text: text.to_owned(), tool: tool.to_owned(), pattern }
    }

    fn matches(&self, tool: &str, input: &Value, directory: Option<&str>, reading: Care) -> bool {
        if !names(&self.tool, tool) {
            return false;
        }
        let Some(pattern) = &self.pattern else { return true };
        match subject(tool, input, directory) {
            Some(Subject::Command(command)) => command_matches(pattern, command, reading),
            Some(Subject::Path(path)) => path_matches(pattern, &path),
            Some(Subject::Url(url)) => url_matches(pattern, url),
            Some(Subject::Name(name)) => glob(pattern, name),
            None => reading == Care::Wary,
        }
    }
}

/// Whether a rule for `named` covers `tool`. `mcp__docs` covers all tools of that server.
fn names(named: &str, tool: &str) -> bool {
    let whole_server = named.starts_with("mcp__")
        && tool.strip_prefix(named).is_some_and(|rest| rest.starts_with("__") && rest.len() > 2);
    whole_server || glob(named, tool)
}

/// What a pattern is compared with.
enum Subject<'a> {
    Command(&'a str),
    Path(Cow<'a, str>),
    Url(&'a str),
    Name(&'a str),
}

fn subject<'a>(tool: &str, input: &'a Value, directory: Option<&str>) -> Option<Subject<'a>> {
    let field = |name: &str| input.get(name).and_then(Value::as_str);
    match tool {
        "Bash" => field("command").map(Subject::Command),
        "Read" | "Edit" | "MultiEdit" | "Write" => {
            field("file_path").map(|path| in_directory(path, directory))
        }
        "NotebookEdit" => field("notebook_path").map(|path| in_directory(path, directory)),
        "Glob" | "Grep" => field("path").map(|path| in_directory(path, directory)),
        "WebFetch" => field("url").map(Subject::Url),
        "Task" | "Agent" => field("subagent_type").map(Subject::Name),
        "Skill" => field("skill").map(Subject::Name),
        _ => None,
    }
}

/// Paths below the agent's directory are compared relative to it, others with one more slash in front.
fn in_directory<'a>(path: &'a str, directory: Option<&str>) -> Subject<'a> {
    let below =
        directory.and_then(|directory| path.strip_prefix(directory)).and_then(|rest| rest.strip_prefix('/'));
    Subject::Path(match below {
        Some(below) => Cow::Borrowed(below),
        None if path.starts_with('/') => Cow::Owned(format!("/{path}")),
        None => Cow::Borrowed(path),
    })
}

fn path_matches(pattern: &str, path: &str) -> bool {
    let climbs = path.split('/').any(|part| part == "..");
    !climbs && glob(pattern.trim_start_matches("./"), path.trim_start_matches("./"))
}

fn url_matches(pattern: &str, url: &str) -> bool {
    let Some(domain) = pattern.strip_prefix("domain:") else { return glob(pattern, url) };
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
    host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

fn command_matches(pattern: &str, command: &str, reading: Care) -> bool {
    let command = command.trim();
    match reading {
        Care::Strict if command.contains(shell::JOINTS) => command == pattern,
        Care::Strict => one_command_matches(pattern, command),
        Care::Wary => shell::may_run(command, &|command| one_command_matches(pattern, command)),
    }
}

/// `git *` and the older `git:*` cover `git` with and without arguments, but not `github`.
fn one_command_matches(pattern: &str, command: &str) -> bool {
    let prefix = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
    match prefix {
        Some(prefix) if !prefix.contains('*') => command
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace)),
        _ => glob(pattern, command),
    }
}

/// Matches with `*` for any text.
fn glob(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The call in the form that permissions use: equal for the same tool and input, whatever the order of the fields.
pub fn tool_call(tool: &str, input: &Value) -> ToolCall {
    let input = towline_core::hexadecimal(&Sha256::digest(ordered(input).to_string()));
    ToolCall { tool: tool.to_owned(), input }
}

fn ordered(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(ordered).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> =
                fields.iter().map(|(name, value)| (name.clone(), ordered(value))).collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            fields.into_iter().collect()
        }
        other => other.clone(),
    }
}

/// The narrowest sensible rule that allows such calls. No pattern covers a command line of several commands, and one that begins
/// with an assignment or with `env` and the like could run anything: both are allowed verbatim.
fn would_allow(tool: &str, input: &Value) -> String {
    let command = input.get("command").and_then(Value::as_str).map(str::trim).filter(|_| tool == "Bash");
    match command {
        Some(command) if command.contains(shell::JOINTS) || shell::begins_with_a_runner(command) => {
            format!("Bash({command})")
        }
        Some(command) => match command.split_whitespace().next() {
            Some(program) => format!("Bash({program} *)"),
            None => tool.to_owned(),
        },
        None => tool.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(text: &str, tool: &str, input: &Value, reading: Care) -> bool {
        Rule::parse(text).matches(tool, input, Some("/workspace"), reading)
    }

    fn both(text: &str, tool: &str, input: &Value) -> (bool, bool) {
        (rule(text, tool, input, Care::Strict), rule(text, tool, input, Care::Wary))
    }

    #[test]
    fn a_command_is_allowed_only_when_the_rule_covers_all_of_it() {
        let cases = [
            ("Bash", "rm -rf /", (true, true)),
            ("Bash(*)", "rm -rf /", (true, true)),
            ("Bash(git *)", "git status", (true, true)),
            ("Bash(git:*)", "git status", (true, true)),
            ("Bash(git *)", "git", (true, true)),
            ("Bash(git *)", "github status", (false, false)),
            ("Bash(git:*)", "legit status", (false, false)),
            ("Bash(git *)", "git status && rm -rf /", (false, true)),
            ("Bash(rm *)", "git status && rm -rf /", (false, true)),
            ("Bash(rm *)", "sudo sh -c 'rm -rf /'", (false, true)),
            ("Bash(rm *)", "git rm a.txt", (false, false)),
            ("Bash(git push *)", "git  push", (false, true)),
            ("Bash(git push)", "sudo -u x 'git' push", (false, true)),
            ("Bash(git push)", "sh -ec 'git push'", (false, true)),
            ("Bash(git push *)", "echo 'git push'", (false, false)),
            ("Bash(git *)", "git log; make", (false, true)),
            ("Bash(git *)", "git log | sh", (false, true)),
            ("Bash(git *)", "git log\nsh", (false, true)),
            ("Bash(git *)", "git log $(sh)", (false, true)),
            ("Bash(git *)", "git log `sh`", (false, true)),
            ("Bash(git *)", "git log > /etc/passwd", (false, true)),
            ("Bash(make test && make lint)", "make test && make lint", (true, true)),
            ("Bash(make test)", "make tests", (false, false)),
            ("Bash(* --version)", "cargo --version", (true, true)),
            ("Bash(npm run * test)", "npm run unit test", (true, true)),
            ("Edit", "git status", (false, false)),
        ];
        for (text, command, wanted) in cases {
            assert_eq!(both(text, "Bash", &json!({ "command": command })), wanted, "{text} on {command}");
        }
    }

    #[test]
    fn paths_are_relative_to_the_agents_directory() {
        let cases = [
            ("Edit(src/*)", "/workspace/src/a.rs", true),
            ("Edit(src/*)", "src/a.rs", true),
            ("Edit(src/*)", "/etc/src/a.rs", false),
            ("Edit(src/*)", "/workspace2/src/a.rs", false),
            ("Edit(src/*)", "/workspace/src/../../etc/passwd", false),
            ("Edit(*.rs)", "/workspace/src/a.rs", true),
            ("Edit(//etc/*)", "/etc/hosts", true),
            ("Write(src/*)", "/workspace/src/a.rs", false),
        ];
        for (text, path, wanted) in cases {
            assert_eq!(
                both(text, "Edit", &json!({ "file_path": path })),
                (wanted, wanted),
                "{text} on {path}"
            );
        }
    }

    #[test]
    fn domains_cover_their_subdomains_and_no_lookalikes() {
        let cases = [
            ("https://example.org/a", true),
            ("https://docs.example.org:8080?x", true),
            ("https://badexample.org/", false),
            ("https://example.org.evil.net/", false),
            ("https://example.org@evil.net/", false),
            ("https://evil.net/?https://example.org", false),
        ];
        for (url, wanted) in cases {
            assert_eq!(
                both("WebFetch(domain:example.org)", "WebFetch", &json!({ "url": url })),
                (wanted, wanted),
                "{url}"
            );
        }
    }

    #[test]
    fn a_server_name_covers_all_of_its_tools() {
        let none = json!({});
        assert_eq!(both("mcp__docs", "mcp__docs__find", &none), (true, true));
        assert_eq!(both("mcp__docs__*", "mcp__docs__find", &none), (true, true));
        assert_eq!(both("mcp__docs", "mcp__docs2__find", &none), (false, false));
        assert_eq!(both("Bash", "BashOutput", &none), (false, false));
    }

    #[test]
    fn a_pattern_that_cannot_be_compared_denies_but_does_not_allow() {
        assert_eq!(both("Bash(git *)", "Bash", &json!({})), (false, true));
        assert_eq!(both("Gadget(x)", "Gadget", &json!({"x": 1})), (false, true));
    }

    fn hash(input: &str) -> String {
        tool_call("Bash", &serde_json::from_str(input).expect("JSON")).input
    }

    #[test]
    fn calls_are_equal_whatever_the_order_of_their_fields() {
        let one = hash(r#"{"command": "make", "options": {"a": 1, "b": [1, 2]}}"#);
        assert_eq!(one, hash(r#"{"options": {"b": [1, 2], "a": 1}, "command": "make"}"#));
        assert_eq!(one.len(), 64);
        let others = [
            r#"{"command": "make", "options": {"a": 1, "b": [2, 1]}}"#,
            r#"{"command": "make ", "options": {"a": 1, "b": [1, 2]}}"#,
            r#"{"command": "make"}"#,
            r#"{"command": "make", "options": {"a": "1", "b": [1, 2]}}"#,
        ];
        for other in others {
            assert_ne!(one, hash(other), "{other}");
        }
    }

    #[test]
    fn the_suggested_rule_would_allow_the_call() {
        for (command, wanted) in [
            ("npm test", "Bash(npm *)"),
            ("echo a > b", "Bash(echo a > b)"),
            ("cd x && make", "Bash(cd x && make)"),
            ("FOO=1 cargo test", "Bash(FOO=1 cargo test)"),
            ("LD_PRELOAD=./x.so ls", "Bash(LD_PRELOAD=./x.so ls)"),
            ("env A=b ls", "Bash(env A=b ls)"),
            ("/usr/bin/timeout 5 ls", "Bash(/usr/bin/timeout 5 ls)"),
            ("'sudo' ls", "Bash('sudo' ls)"),
            ("bash -c ls", "Bash(bash -c ls)"),
        ] {
            let input = json!({ "command": command });
            let suggested = would_allow("Bash", &input);
            assert_eq!(suggested, wanted);
            assert!(rule(&suggested, "Bash", &input, Care::Strict), "{suggested}");
        }
        assert_eq!(would_allow("WebFetch", &json!({"url": "x"})), "WebFetch");
    }
}
