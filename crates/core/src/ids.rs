//! Names of things: one newtype per kind of id, so that they cannot be mixed up.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A text that is not an id of the kind that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {kind} id")]
pub struct InvalidId {
    text: String,
    kind: &'static str,
}

/// A goal's id: a UUIDv7, so that ids sort by the time of their creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GoalId(Uuid);

impl GoalId {
    /// Takes an id that was made at the edge, where there are clocks and random numbers.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The form shown to people: the last eight digits. The first ones of a UUIDv7 are its time, which goals
    /// made in the same minute share.
    pub fn short(&self) -> String {
        self.0.simple().to_string()[24..].to_owned()
    }

    /// Whether `given` names this goal: a prefix of its id, with or without dashes, or of its short form.
    pub fn matches(&self, given: &str) -> bool {
        let given = given.to_ascii_lowercase();
        if given.is_empty() {
            return false;
        }
        let simple = self.0.simple().to_string();
        self.0.hyphenated().to_string().starts_with(&given)
            || simple.starts_with(&given)
            || simple[24..].starts_with(&given)
    }

    /// A number for what is to be random from goal to goal and from the `n`th time to the next, and yet the same when
    /// it is worked out again.
    pub fn seed(&self, n: u32) -> u64 {
        // The random part of the id, with each time far away from the one before.
        self.0.as_u64_pair().1 ^ u64::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

impl fmt::Display for GoalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for GoalId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Uuid::parse_str(text).map(Self).map_err(|_| InvalidId { text: text.to_owned(), kind: "goal" })
    }
}

/// The number of an attempt within its goal, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptNo(NonZeroU32);

impl AttemptNo {
    /// The first attempt of a goal.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// The attempt with this number; there is no attempt 0.
    pub const fn new(number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The number of the attempt that follows `count` earlier ones.
    pub fn after(count: usize) -> Self {
        let next = u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1);
        Self(NonZeroU32::new(next).unwrap_or(NonZeroU32::MIN))
    }

    /// The plain number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// The index in a goal's list of attempts.
    pub(crate) const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl fmt::Display for AttemptNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An attempt's id, unique over all goals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptId(Uuid);

impl AttemptId {
    /// The id follows from the goal and the number, so that composing a launch again after a crash names the
    /// same attempt.
    pub fn of(goal: GoalId, number: AttemptNo) -> Self {
        Self(Uuid::new_v5(&goal.0, format!("attempt {number}").as_bytes()))
    }

    /// The id of a conversation with a judge, by its number.
    pub fn of_judge(goal: GoalId, number: u32) -> Self {
        Self(Uuid::new_v5(&goal.0, format!("judge {number}").as_bytes()))
    }

    /// The id of one message to this attempt's agent.
    pub fn message(&self, name: &str) -> String {
        Uuid::new_v5(&self.0, format!("message {name}").as_bytes()).hyphenated().to_string()
    }

    /// The id of the session that this attempt starts when it resumes none.
    pub fn fresh_session(&self) -> SessionId {
        SessionId::new(Uuid::new_v5(&self.0, b"session").hyphenated().to_string())
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps the text as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// An agent's own name for a conversation.
    SessionId
}
text_id! {
    /// The name of an agent in the configuration: `claude` in `[agents.claude]`.
    AgentName
}
text_id! {
    /// A commit by its full hash.
    Commit
}

impl Commit {
    /// The beginning of the hash, as people write it.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident($number:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $number);

        impl $name {
            /// The one after this.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter! {
    /// Grows with every new holder of a goal's lease; writes of an older one are refused.
    Generation(u64)
}
counter! {
    /// The place of an event in its goal's log: 1, 2, 3 … without gaps.
    Seq(u64)
}
counter! {
    /// The place of an event among those of all goals: it grows with each, and may have gaps.
    PoolSeq(u64)
}
counter! {
    /// The number of a question within its goal, from 1.
    QuestionNo(u32)
}
counter! {
    /// The number of an operator's message within its goal, from 1.
    MessageNo(u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal() -> GoalId {
        crate::fixtures::goal().id
    }

    #[test]
    fn a_goal_is_found_by_any_prefix_of_its_id_or_short_form() {
        for given in ["01932f6e-7c", "01932f6e7c", "456789ab", "4567", "01932F6E"] {
            assert!(goal().matches(given), "{given}");
        }
        for given in ["", "ffff", "01932f6e-7c00-7abc-8def-0123456789ab0"] {
            assert!(!goal().matches(given), "{given}");
        }
    }

    #[test]
    fn a_seed_is_another_for_each_goal_and_time_and_stays_the_same() {
        let later: GoalId = "01932f6e-7c00-7abc-8def-0123456789ac".parse().expect("a goal id");
        let seeds = [goal(), later].map(|goal| [0, 1, 2].map(|n| goal.seed(n)));
        let distinct: std::collections::BTreeSet<u64> = seeds.into_iter().flatten().collect();
        assert_eq!(distinct.len(), 6);
        assert_eq!(goal().seed(1), goal().seed(1));
    }

    #[test]
    fn attempts_of_one_goal_have_different_ids_that_stay_the_same() {
        let (one, two) =
            (AttemptId::of(goal(), AttemptNo::FIRST), AttemptId::of(goal(), AttemptNo::after(1)));
        assert_ne!(one, two);
        assert_eq!(one, AttemptId::of(goal(), AttemptNo::FIRST));
        assert_ne!(one.fresh_session(), two.fresh_session());
    }
}
