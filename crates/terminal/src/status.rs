//! What a goal looks like in a list, and what a person can do with it, by the name of its phase in JSON. The page has the same table in
//! `web/src/lib/status.ts`.

use crate::Tone;

/// Where a goal is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Those that wait for a person.
    Needs,
    Running,
    Waiting,
    Ended,
}

/// How the phase of a goal is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status<'a> {
    /// Two or three words.
    pub label: &'a str,
    /// None for what is neither good nor bad.
    pub tone: Option<Tone>,
    pub group: Group,
}

/// The status of a goal in this phase. An unknown phase is shown by name, as an error.
pub fn status(phase: &str) -> Status<'_> {
    let (label, tone, group) = match phase {
        "queued" | "sleeping" | "limited" => (phase, None, Group::Waiting),
        "paused" => (phase, Some(Tone::Dim), Group::Waiting),
        "preparing" | "running" | "stopping" | "checking" => (phase, Some(Tone::Bold), Group::Running),
        "blocked" => ("needs an answer", Some(Tone::Warn), Group::Needs),
        "escalated" => ("needs you", Some(Tone::Warn), Group::Needs),
        "done" => (phase, Some(Tone::Good), Group::Ended),
        "unproven" | "cancelled" => (phase, Some(Tone::Dim), Group::Ended),
        "failed" | "unreadable" => (phase, Some(Tone::Bad), Group::Ended),
        _ => (phase, Some(Tone::Bad), Group::Waiting),
    };
    Status { label, tone, group }
}

/// Why a goal is where it is, in one sentence; empty where the label is enough.
pub fn reason(phase: &str, reason: Option<&str>, hold: Option<&str>) -> String {
    let reason = reason.unwrap_or_default();
    match phase {
        "paused" if reason == "shutdown" => "paused by a shutdown; the server resumes it".to_owned(),
        "paused" => "paused by you".to_owned(),
        "queued" => hold.unwrap_or_default().to_owned(),
        "limited" if reason.is_empty() => "the quota is used up".to_owned(),
        "limited" => format!("the quota is used up; {reason}"),
        _ => match reason.strip_prefix("budget: ").filter(|axis| is_name(axis)) {
            Some(axis) => format!("the budget of {} is spent", axis_name(axis)),
            None => reason.to_owned(),
        },
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What a budget limits.
fn axis_name(axis: &str) -> String {
    match axis {
        "usd" => "money".to_owned(),
        "wall" => "time".to_owned(),
        "errors" | "denials" => format!("{axis} in a row"),
        axis => axis.replace('_', " "),
    }
}

/// What a person can do with a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Tell,
    Pause,
    Resume,
    Cancel,
    Retry,
    Merge,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Tell, Self::Pause, Self::Resume, Self::Cancel, Self::Retry, Self::Merge];

    /// The name of its command.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tell => "tell",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Merge => "merge",
        }
    }

    /// Whether it fits a goal in this phase. The engine has the last word.
    pub fn fits(self, phase: &str) -> bool {
        let group = status(phase).group;
        let is_settled = group == Group::Ended || matches!(phase, "escalated" | "paused");
        match self {
            Self::Tell | Self::Cancel => group != Group::Ended,
            Self::Pause => !is_settled && phase != "stopping",
            Self::Resume => phase == "paused",
            Self::Retry => {
                matches!(phase, "escalated" | "failed" | "cancelled" | "unproven" | "limited" | "sleeping")
            }
            Self::Merge => matches!(phase, "done" | "unproven"),
        }
    }
}

#[cfg(test)]
mod tests {
    use towline_core::{Axis, Phase};

    use super::*;

    /// The table of the page, by phase: label and group.
    fn of_the_page() -> Vec<(String, String, String)> {
        let source = include_str!("../../../web/src/lib/status.ts");
        let rows = source.lines().filter(|line| line.contains("{ label: '"));
        let quoted = |line: &str, key: &str| {
            let (_, rest) = line.split_once(&format!("{key}: '")).expect("a row");
            rest.split_once('\'').expect("a string").0.to_owned()
        };
        rows.map(|line| {
            let phase = line.trim().split_once(':').expect("a row").0.to_owned();
            (phase, quoted(line, "label"), quoted(line, "group"))
        })
        .collect()
    }

    #[test]
    fn the_page_and_the_terminal_have_the_same_words() {
        let page = of_the_page();
        assert!(page.len() > Phase::names().len(), "{page:?}");
        for (phase, label, group) in &page {
            let here = status(phase);
            let named = format!("{:?}", here.group).to_lowercase();
            assert_eq!((here.label, named.as_str()), (label.as_str(), group.as_str()), "{phase}");
        }
        for name in Phase::names() {
            assert!(page.iter().any(|(phase, ..)| phase == name), "{name}");
        }
    }

    #[test]
    fn the_page_and_the_terminal_have_the_same_reasons() {
        let page = include_str!("../../../web/src/lib/status.ts");
        let (_, of_page) = page.split_once("export function reasonOf").expect("the reasons");
        let has = |text: &str| assert!(of_page.contains(text), "{text}");
        let shutdown = reason("paused", Some("shutdown"), None);
        has(&format!(
            "goal.reason === 'shutdown' ? '{shutdown}' : '{}'",
            reason("paused", Some("operator"), None)
        ));
        has("'queued') return goal.hold?.text ?? ''");
        assert_eq!(reason("queued", Some("x"), Some("all slots are taken")), "all slots are taken");
        let limited = reason("limited", None, None);
        has(&format!("`{limited}${{goal.reason ? `; ${{goal.reason}}` : ''}}`"));
        assert_eq!(reason("limited", Some("5-hour limit"), None), format!("{limited}; 5-hour limit"));
        let axes = include_str!("../../../web/src/lib/format.ts").lines();
        let axes = axes.filter(|line| line.starts_with("const AXES")).collect::<String>();
        let (_, axes) = axes.split_once("= {").expect("the names of axes");
        let named = axes.split(',').filter_map(|pair| pair.split_once(": '")).map(|(axis, name)| {
            (axis.trim().to_owned(), name.split('\'').next().unwrap_or_default().to_owned())
        });
        let named: std::collections::BTreeMap<String, String> = named.collect();
        has("`the budget of ${axisName(spent)} is spent`");
        for axis in Axis::ALL {
            let name = named.get(axis.name()).cloned().unwrap_or_else(|| axis.name().replace('_', " "));
            let reason = reason("failed", Some(&format!("budget: {}", axis.name())), None);
            assert_eq!(reason, format!("the budget of {name} is spent"));
        }
        assert!(named.keys().all(|name| Axis::ALL.iter().any(|axis| axis.name() == name)), "{named:?}");
        for other in ["budget: a b", "budget: ", "budget of $5.00 spent", "no agent"] {
            assert_eq!(reason("escalated", Some(other), None), other);
        }
        assert_eq!(reason("running", None, None), "");
    }

    #[test]
    fn each_step_fits_the_phases_in_which_it_makes_sense() {
        let fitting = |phase| {
            let fitting = Step::ALL.into_iter().filter(|step| step.fits(phase)).map(Step::name);
            fitting.collect::<Vec<_>>().join(" ")
        };
        for (phase, wanted) in [
            ("queued", "tell pause cancel"),
            ("running", "tell pause cancel"),
            ("stopping", "tell cancel"),
            ("blocked", "tell pause cancel"),
            ("paused", "tell resume cancel"),
            ("limited", "tell pause cancel retry"),
            ("escalated", "tell cancel retry"),
            ("done", "merge"),
            ("unproven", "retry merge"),
            ("failed", "retry"),
            ("cancelled", "retry"),
        ] {
            assert_eq!(fitting(phase), wanted, "{phase}");
        }
    }
}
