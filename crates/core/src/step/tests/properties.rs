//! What no sequence of news may break, whoever sends it and in whatever order.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::news::{News, Sender, any_goal, end, news};
use crate::fixtures::*;
use crate::{
    AttemptNo, DeliveryState, Event, Generation, Goal, GoalState, Incoming, Moved, Phase, Stamp, StepOutcome,
    Usage, Verdict,
};

/// A goal under random news, watched at every step.
struct Watch {
    story: Story,
    /// Keys of every effect so far.
    asked: BTreeSet<String>,
    /// Those that are not over.
    open: BTreeSet<String>,
}

impl Watch {
    fn over(goal: Goal) -> Self {
        Self { story: Story::of(goal), asked: BTreeSet::new(), open: BTreeSet::new() }
    }

    fn take(&mut self, news: &News) {
        let seconds = self.story.now.as_second() + news.wait;
        self.story.now = jiff::Timestamp::from_second(seconds).expect("in range");
        let incoming = self.choose(news);
        let before = self.story.state.clone();
        let outcome = self.story.send(&incoming);
        assert_survives_storage(&incoming.event);
        match outcome {
            StepOutcome::Moved(moved) => self.moved(&before, &incoming.event, &moved),
            StepOutcome::Stale(_) | StepOutcome::Illegal(_) => assert_eq!(self.story.state, before),
        }
    }

    /// The first candidate that is legal, or the last.
    fn choose(&self, news: &News) -> Incoming {
        let stamped = |event: &Event| {
            let mut incoming = incoming(self.stamp(news.sender, event), event.clone());
            incoming.raw = news.raw;
            incoming
        };
        let legal = |incoming: &Incoming| matches!(self.story.clone().send(incoming), StepOutcome::Moved(_));
        let mut incoming: Vec<Incoming> = news.candidates.iter().map(stamped).collect();
        let chosen = incoming.iter().position(legal).unwrap_or(incoming.len() - 1);
        incoming.swap_remove(chosen)
    }

    fn stamp(&self, sender: Sender, event: &Event) -> Stamp {
        let right = self.story.stamp(event);
        match sender {
            Sender::Right => right,
            Sender::Nobody => Stamp { attempt: None, ..right },
            Sender::OtherAttempt(number) => Stamp { attempt: AttemptNo::new(number), ..right },
            Sender::OtherLease(generation) => Stamp { generation: Generation(generation), ..right },
        }
    }

    fn moved(&mut self, before: &GoalState, event: &Event, moved: &Moved) {
        let state = &self.story.state;
        let changed = state.phase != before.phase;
        let follows = changed.then(|| now_in(state.phase.clone()));
        let phases = moved.events.iter().filter(|event| matches!(event, Event::PhaseChanged { .. }));
        assert_eq!(phases.collect::<Vec<_>>(), Vec::from_iter(&follows));
        assert_eq!(follows.as_ref().and(moved.events.last()), follows.as_ref(), "the phase changes at last");
        let recorded = moved.recorded_as.as_deref().unwrap_or(event);
        if let Event::AttemptEnded { end, .. } = recorded {
            assert_eq!(state.attempts.iter().rev().find_map(|attempt| attempt.end.as_ref()), Some(end));
        }
        assert_usage_grows(before.usage(), state.usage());
        if changed && state.phase == Phase::Done {
            assert!(matches!(event, Event::VerdictReached { verdict } if holds(verdict)), "{event:?}");
        }
        assert!(!changed || before.phase != Phase::Done, "done is final");
        for effect in &moved.effects {
            assert_survives_storage(effect);
            assert!(self.asked.insert(effect.key()), "a second {}", effect.key());
            assert!(self.open.insert(effect.key()));
        }
        for key in &moved.settled {
            assert!(self.open.remove(key), "{key} is settled, but was not open");
        }
        assert_eq!(self.open, work_of(state), "{:?}", state.phase);
        assert_survives_storage(state);
        assert_sound(state);
        assert_leads_on(&self.story);
        assert_can_be_ended(&self.story);
    }
}

fn holds(verdict: &Verdict) -> bool {
    !verdict.checks.is_empty() && verdict.checks.iter().all(|check| check.met)
}

/// What must be under way in this state: no more, so that nothing is started twice, and no less, so that nobody
/// waits for what nobody does.
fn work_of(state: &GoalState) -> BTreeSet<String> {
    let running = |attempt: &AttemptNo| format!("launch/{attempt}");
    let checking =
        |attempt: &AttemptNo| match state.attempt(*attempt).map_or(0, |attempt| attempt.check_rounds) {
            1 => format!("checks/{attempt}"),
            round => format!("checks/{attempt}/{round}"),
        };
    let preparing = format!("prepare/{}", state.preparations);
    let baseline = state.baseline.is_running().then(|| format!("baseline/{}", state.baseline_rounds));
    let work = match &state.phase {
        Phase::Preparing if baseline.is_some() => vec![],
        Phase::Preparing => vec![preparing],
        Phase::Running { attempt } | Phase::Blocked { attempt: Some(attempt), .. } => vec![running(attempt)],
        Phase::Checking { attempt } => vec![checking(attempt)],
        Phase::Stopping(stopping) => {
            let alive = state.last_attempt().is_some_and(|attempt| attempt.end.is_none());
            let work = match &stopping.attempt {
                None => preparing,
                Some(attempt) if alive => running(attempt),
                Some(attempt) => checking(attempt),
            };
            vec![format!("stop/{work}"), work]
        }
        _ => vec![],
    };
    work.into_iter().chain(baseline).chain(deliveries_of(state)).collect()
}

/// What is on its way to the living agent.
fn deliveries_of(state: &GoalState) -> Vec<String> {
    let answers = state.questions.iter().filter_map(|question| match question.answer()?.1 {
        DeliveryState::OnItsWay(attempt) => Some(format!("answer/{}/{attempt}", question.n)),
        _ => None,
    });
    let messages = state.messages.iter().filter_map(|message| match message.delivery {
        DeliveryState::OnItsWay(attempt) => Some(format!("tell/{}/{attempt}", message.n)),
        _ => None,
    });
    answers.chain(messages).collect()
}

fn assert_sound(state: &GoalState) {
    let numbers: Vec<u32> = state.attempts.iter().map(|attempt| attempt.n.get()).collect();
    let gapless: Vec<u32> = (1..).take(numbers.len()).collect();
    assert_eq!(numbers, gapless);
    let alive: Vec<AttemptNo> =
        state.attempts.iter().filter(|attempt| attempt.end.is_none()).map(|attempt| attempt.n).collect();
    match &state.phase {
        Phase::Running { attempt } | Phase::Blocked { attempt: Some(attempt), .. } => {
            assert_eq!(alive, [*attempt]);
        }
        Phase::Stopping(stopping) => {
            assert!(alive.is_empty() || alive == Vec::from_iter(stopping.attempt), "{alive:?}");
        }
        phase => assert_eq!(alive, [], "{phase:?}"),
    }
    assert_eq!(state.settled_at.is_some(), state.phase.waits_for_operator() || state.phase.is_pausing());
    let open = state.open_question().map(|question| question.n);
    match &state.phase {
        Phase::Blocked { question, .. } => assert_eq!(open, Some(*question)),
        Phase::Running { .. } | Phase::Queued | Phase::Preparing => assert_eq!(open, None),
        _ => {}
    }
    if let Some(limit) = state.budget.attempts {
        assert!(state.attempts_spent() <= limit, "{} attempts of {limit}", state.attempts_spent());
    }
}

fn assert_usage_grows(before: Usage, after: Usage) {
    let parts =
        |usage: Usage| [usage.input.0, usage.output.0, usage.cache_read.0, usage.cache_write.0, usage.cost.0];
    let grows = parts(before).iter().zip(parts(after)).all(|(before, after)| *before <= after);
    assert!(grows, "{before:?} became {after:?}");
}

fn assert_survives_storage<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let stored = serde_json::to_string(value).expect("can be stored");
    let read: T = serde_json::from_str(&stored).expect(&stored);
    assert_eq!(&read, value);
}

/// In every phase that is not settled, what Towline waits for leads out of it without the operator.
fn assert_leads_on(story: &Story) {
    let mut story = story.clone();
    let position = |story: &Story| (story.state.phase.clone(), story.state.waits_for_baseline());
    let before = position(&story);
    let event = match &before.0 {
        Phase::Queued => dispatched(),
        Phase::Preparing if story.state.waits_for_baseline() => {
            Event::BaselineUnknown { round: story.state.baseline_rounds, reason: String::new() }
        }
        Phase::Preparing => prepared(),
        Phase::Running { .. } => ended(crashed()),
        Phase::Checking { .. } => red_verdict("other"),
        Phase::Stopping(_) if story.state.last_attempt().is_some_and(|last| last.end.is_none()) => {
            ended(crashed())
        }
        Phase::Stopping(_) => Event::Stopped,
        Phase::Sleeping { until, .. }
        | Phase::Limited { until, .. }
        | Phase::Blocked { until: Some(until), .. } => {
            story.now = (*until).max(story.now);
            Event::Woken
        }
        // Nothing leads out of a question without a deadline but an answer.
        _ => return,
    };
    story.receive(event);
    assert_ne!(position(&story), before);
}

/// Ending what runs, waking, dispatching and at last cancelling brings every goal to a settled phase.
fn assert_can_be_ended(story: &Story) {
    let mut story = story.clone();
    story.now = story.state.phase.until().map_or(story.now, |until| until.max(story.now));
    let end_what_runs = [ended(crashed()), Event::Stopped, Event::ChecksFailed { error: String::new() }];
    let go_on = [Event::Woken, dispatched(), prepared()];
    let cancel = [Event::CancelRequested, ended(crashed()), Event::Stopped];
    for event in end_what_runs.into_iter().chain(go_on).chain(cancel) {
        // Most of them are illegal in the phase of the goal.
        let _ = story.offer(event);
    }
    assert!(story.state.phase.is_settled(), "{:?}", story.state.phase);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_news_breaks_a_goal(goal in any_goal(), news in vec(news(), 1..60)) {
        let mut watch = Watch::over(goal);
        for news in &news {
            watch.take(news);
        }
    }

    #[test]
    fn a_goal_that_nobody_looks_after_comes_to_an_end(turns in vec((any::<bool>(), end(), 0_u8..4), 60)) {
        let mut story = Story::launched(goal());
        for (in_session, end, tree) in turns {
            if story.state.phase.is_settled() {
                break;
            }
            if in_session {
                story.work_in("s1", story.state.session.is_some());
            }
            story.receive(ended(end));
            match story.state.phase {
                Phase::Checking { .. } => drop(story.receive(red_verdict(&format!("t{tree}")))),
                Phase::Sleeping { .. } => drop(story.go_on()),
                // A quota can be used up for ever without anybody's fault.
                Phase::Limited { .. } => return Ok(()),
                _ => {}
            }
        }
        prop_assert!(story.state.phase.is_settled(), "{:?}", story.state);
    }
}
