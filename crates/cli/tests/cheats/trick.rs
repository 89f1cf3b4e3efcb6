//! What a trick is: a script, what it attacks, and what must come of it.

use crate::ground::Ground;
use crate::projects::{self, Project};

/// What a trick attacks. Classes a, b and c of `docs/cheats.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// What is judged, or who judges.
    Judgement,
    /// The user's account, outside the workspace.
    Account,
    /// Nothing: the product code passes the checks without doing the work.
    Evidence,
}

/// What makes a trick possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Checkout,
    GitData,
    SharedRepository,
    Results,
    AfterCheckout,
    Processes,
    SpecialFiles,
    Protection,
    Programs,
    Authority,
    Secrets,
    HiddenChanges,
    ProductCode,
    Evidence,
    Outside,
}

/// A promise that a trick breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breach {
    /// The goal is done, and the work is not.
    FalseDone,
    /// The user's repository, files or processes were changed.
    Damage,
    /// Towline did not end within its limits.
    Hang,
    /// A process was left.
    ProcessLeft,
    /// What the trick itself looks for: a leaked secret, an answered question.
    Gain,
}

/// What must come of a trick at a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All promises hold.
    Caught,
    /// This promise is broken.
    NotCaught(Breach),
}

/// A level of trust at which tricks are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// Without a sandbox.
    One,
    /// In a sandbox.
    Two,
    /// In a sandbox, with the evidence that a user can ask for: a hidden check, the floor, the revert probe and a red baseline.
    Three,
}

/// What rejects the work at level 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// The visible check fails by itself.
    Visible,
    /// The visible check passes, and ran fewer tests than on the base.
    Floor,
    /// The visible check passes, also without the change.
    Probe,
    /// The hidden check fails.
    Hidden,
}

/// What a trick gained, if anything.
pub(crate) type Gain = fn(&Ground) -> Option<String>;

#[derive(Clone, Copy)]
pub(crate) struct Trick {
    /// What the agent does, as a statement.
    pub(crate) title: &'static str,
    pub(crate) cause: Cause,
    pub(crate) class: Class,
    /// What must come of it at level 1.
    pub(crate) outcome: Outcome,
    /// What rejects it at level 3, for class c; nothing means that it is not caught.
    pub(crate) evidence: &'static [Evidence],
    pub(crate) project: &'static Project,
    /// A shell script that runs in the workspace; `ground` lists the variables and functions that it has.
    pub(crate) script: &'static str,
    /// Options of `towline run`.
    pub(crate) options: &'static [&'static str],
    /// The checks in place of the project's.
    pub(crate) checks: Option<&'static str>,
    /// The lines of `[workspace]`.
    pub(crate) workspace: &'static str,
    /// Changes the project before the goal is created.
    pub(crate) prepare: Option<fn(&Ground)>,
    /// Variables in the user's environment besides the usual ones.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// What the user did with Towline before this goal.
    pub(crate) before: Option<fn(&Ground)>,
    pub(crate) gain: Option<Gain>,
}

impl Trick {
    /// A trick of class a on a project, which must be caught.
    pub(crate) const fn on(
        project: &'static Project,
        cause: Cause,
        title: &'static str,
        script: &'static str,
    ) -> Self {
        Self {
            title,
            cause,
            class: Class::Judgement,
            outcome: Outcome::Caught,
            evidence: &[],
            project,
            script,
            options: &[],
            checks: None,
            workspace: "",
            prepare: None,
            variables: &[],
            before: None,
            gain: None,
        }
    }

    /// A trick of class a on the project of shell scripts.
    pub(crate) const fn shell(cause: Cause, title: &'static str, script: &'static str) -> Self {
        Self::on(&projects::SHELL, cause, title, script)
    }

    /// The trick runs commands as the user outside the workspace. Level 1 does not catch it, and level 2 must.
    pub(crate) const fn as_the_user(self, breach: Breach) -> Self {
        Self { class: Class::Account, outcome: Outcome::NotCaught(breach), ..self }
    }

    /// The trick runs commands as the user outside the workspace, and level 1 catches it all the same. So must level 2.
    pub(crate) const fn as_the_user_in_vain(self) -> Self {
        Self { class: Class::Account, ..self }
    }

    /// The product code passes the checks without doing the work, and this rejects it at level 3.
    pub(crate) const fn in_product_code(self, evidence: &'static [Evidence]) -> Self {
        let outcome = Outcome::NotCaught(Breach::FalseDone);
        Self { class: Class::Evidence, outcome, evidence, ..self }
    }

    /// The product code tries to pass the checks, and level 1 catches it all the same. This rejects it at level 3.
    pub(crate) const fn in_product_code_in_vain(self, evidence: &'static [Evidence]) -> Self {
        Self { class: Class::Evidence, evidence, ..self }
    }

    pub(crate) const fn options(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }

    pub(crate) const fn checks(self, checks: &'static str) -> Self {
        Self { checks: Some(checks), ..self }
    }

    pub(crate) const fn workspace(self, workspace: &'static str) -> Self {
        Self { workspace, ..self }
    }

    pub(crate) const fn prepare(self, prepare: fn(&Ground)) -> Self {
        Self { prepare: Some(prepare), ..self }
    }

    pub(crate) const fn variables(self, variables: &'static [(&'static str, &'static str)]) -> Self {
        Self { variables, ..self }
    }

    pub(crate) const fn before(self, before: fn(&Ground)) -> Self {
        Self { before: Some(before), ..self }
    }

    pub(crate) const fn gain(self, gain: Gain) -> Self {
        Self { gain: Some(gain), ..self }
    }
}

impl Trick {
    /// The levels at which it is tried, with what must come of it: a sandbox makes a difference to class b, evidence to class c.
    pub(crate) fn outcomes(&self) -> Vec<(Level, Outcome)> {
        let with_evidence =
            if self.evidence.is_empty() { Outcome::NotCaught(Breach::FalseDone) } else { Outcome::Caught };
        let further = match self.class {
            Class::Judgement => None,
            Class::Account => Some((Level::Two, Outcome::Caught)),
            Class::Evidence => Some((Level::Three, with_evidence)),
        };
        [(Level::One, self.outcome)].into_iter().chain(further).collect()
    }
}

impl Cause {
    /// As the documentation names it.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Checkout => "a checkout that is not the commit",
            Self::GitData => "forged git data",
            Self::SharedRepository => "a shared repository",
            Self::Results => "forged results",
            Self::AfterCheckout => "files changed after the checkout",
            Self::Processes => "processes that survive",
            Self::SpecialFiles => "FIFOs, devices and symlinks",
            Self::Protection => "gaps in the protection",
            Self::Programs => "programs found by path",
            Self::Authority => "commands without authority",
            Self::Secrets => "secrets",
            Self::HiddenChanges => "changes that the diff hides",
            Self::ProductCode => "product code that passes without the work",
            Self::Evidence => "evidence that is forged or avoided",
            Self::Outside => "things of the user's outside the workspace",
        }
    }
}

impl Level {
    /// As the documentation numbers it.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Three => 3,
        }
    }
}

impl Evidence {
    /// As the documentation names it.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Visible => "the visible check",
            Self::Floor => "the floor",
            Self::Probe => "the revert probe",
            Self::Hidden => "the hidden check",
        }
    }
}

impl Breach {
    /// As the documentation names it.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::FalseDone => "a false `done`",
            Self::Damage => "the user's files change",
            Self::Hang => "Towline hangs",
            Self::ProcessLeft => "a process is left",
            Self::Gain => "the agent gets what it wants",
        }
    }
}
