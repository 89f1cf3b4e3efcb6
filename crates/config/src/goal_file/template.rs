//! Fills a prompt in from the goal's `context`.

use std::collections::BTreeMap;
use std::io;

use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};
use serde_json::Value;

use super::format::LONGEST_GOAL_FILE;

/// How many steps a template may take: far more than any prompt needs, and little enough to end at once.
const STEPS: u64 = 1_000_000;

/// Why a template cannot be filled in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TemplateError {
    /// What is wrong.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) fix: String,
    /// The line of the template, from 1.
    pub(crate) line: usize,
}

/// What a template of a goal with prerequisites may use: a list of them, each with `id`, `title`, `summary`, `candidate` and
/// `branch`.
pub const PREREQUISITES: &str = "prerequisites";

/// A template that can be filled in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Prepared {
    Filled(String),
    /// It uses what the prerequisites leave.
    NeedsPrerequisites,
}

/// Fills a template in that has all it needs. Of one that needs the prerequisites, whatever can go wrong is found with one that
/// is made up.
pub(crate) fn prepare(template: &str, context: &BTreeMap<String, Value>) -> Result<Prepared, TemplateError> {
    let needs_prerequisites = Environment::new()
        .template_from_str(template)
        .is_ok_and(|template| template.undeclared_variables(false).contains(PREREQUISITES));
    if !needs_prerequisites {
        return render(template, context).map(Prepared::Filled);
    }
    let words = ["id", "title", "summary", "candidate", "branch"].map(|key| (key.to_owned(), key.into()));
    let mut with_one = context.clone();
    with_one.insert(PREREQUISITES.to_owned(), Value::Array(vec![Value::Object(words.into_iter().collect())]));
    render(template, &with_one).map(|_| Prepared::NeedsPrerequisites)
}

/// Fills in the prompt of a goal whose prerequisites have ended. The values are data: nothing in them is taken for a template.
pub fn fill_in_template(template: &str, context: &BTreeMap<String, Value>) -> Result<String, String> {
    let filled = render(template, context);
    filled.map_err(|error| format!("{} (line {} of the prompt); {}", error.what, error.line, error.fix))
}

/// Fills the template in. A variable that the context does not have is an error, never an empty text.
pub(crate) fn render(template: &str, context: &BTreeMap<String, Value>) -> Result<String, TemplateError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_debug(true);
    environment.set_fuel(Some(STEPS));
    let mut rendered = Bounded::default();
    let outcome = environment.template_from_str(template).and_then(|template| {
        template.render_captured_to(minijinja::value::Serde(context), &mut rendered).map(drop)
    });
    if rendered.is_full {
        return Err(TemplateError {
            what: format!("the prompt has more than {LONGEST_GOAL_FILE} bytes when it is filled in"),
            fix: "make it shorter, or put what is long into a file that the prompt names".to_owned(),
            line: 1,
        });
    }
    outcome.map_err(|error| explain(template, context, &error))?;
    Ok(String::from_utf8_lossy(&rendered.bytes).into_owned())
}

/// Takes no more than a prompt may be long: a loop over much would fill the memory before anybody could measure it.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > LONGEST_GOAL_FILE {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn explain(template: &str, context: &BTreeMap<String, Value>, error: &Error) -> TemplateError {
    let line = error.line().unwrap_or(1);
    let written = error.range().and_then(|range| template.get(range)).unwrap_or_default().trim();
    if error.kind() == ErrorKind::UndefinedError && !written.is_empty() {
        let known: Vec<&str> = context.keys().map(String::as_str).collect();
        let known =
            if known.is_empty() { "it is empty".to_owned() } else { format!("it has {}", known.join(", ")) };
        return TemplateError {
            what: format!("the prompt's template uses `{written}`, which is not in `context`"),
            fix: format!("add it to `context` ({known})"),
            line,
        };
    }
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    TemplateError {
        what: format!("the prompt's template cannot be filled in: {}{detail}", error.kind()),
        fix: "mend it, or leave `template` out if the prompt is none".to_owned(),
        line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(template: &str) -> Result<String, TemplateError> {
        let context = json!({"who": "Ada", "files": ["a.rs", "b.rs"], "issue": {"id": 7}});
        render(template, &serde_json::from_value(context).unwrap())
    }

    #[test]
    fn a_template_is_filled_in_from_the_context() {
        let template =
            "Fix #{{ issue.id }} for {{ who|upper }}:{% for file in files %} {{ file }}{% endfor %}, <&>";
        assert_eq!(rendered(template).unwrap(), "Fix #7 for ADA: a.rs b.rs, <&>");
        assert_eq!(rendered("no template at all\n").unwrap().trim(), "no template at all");
    }

    #[test]
    fn a_missing_variable_is_named_with_its_line() {
        let missing = |what: &str, line| TemplateError {
            what: format!("the prompt's template uses `{what}`, which is not in `context`"),
            fix: "add it to `context` (it has files, issue, who)".to_owned(),
            line,
        };
        assert_eq!(rendered("one\ntwo {{ whom }}"), Err(missing("whom", 2)));
        assert_eq!(rendered("{{ issue.title }}"), Err(missing("issue.title", 1)));
        assert_eq!(rendered("{% for f in file %}{% endfor %}"), Err(missing("file", 1)));
    }

    #[test]
    fn a_loop_over_much_ends_when_the_prompt_is_too_long() {
        let context = BTreeMap::from([("much".to_owned(), json!("x".repeat(LONGEST_GOAL_FILE / 2)))]);
        // Some 100 GB, if all of it were made.
        let wide = "{% for a in range(100000) %}{{ much }}{% endfor %}";
        let refused = render(wide, &context).unwrap_err();
        assert!(refused.what.contains("more than"), "{refused:?}");
        assert_eq!(render("{{ much }}{{ much }}", &context).unwrap().len(), LONGEST_GOAL_FILE);
    }

    #[test]
    fn a_broken_and_an_endless_template_are_refused() {
        assert_eq!(rendered("a\n{{ who").unwrap_err().line, 2);
        let endless = "{% for a in range(10000) %}{% for b in range(10000) %}x{% endfor %}{% endfor %}";
        assert!(rendered(endless).unwrap_err().what.contains("fuel"), "{:?}", rendered(endless));
    }
}
