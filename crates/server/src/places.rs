//! Who holds the connections. Each kind of client has places of its own, so that agents and strangers never keep the operator out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use towline_core::GoalId;

use crate::authority::Authority;

/// How many connections requests with the operator's token have at the same time.
const MOST_OF_OPERATOR: usize = 256;
/// How many they have before whoever asks for one more is looked up: an agent can read that token.
const UNCHECKED: usize = 32;
/// How many the agents of one goal have, and those of all goals.
const MOST_OF_GOAL: usize = 16;
const MOST_OF_AGENTS: usize = 96;
/// How many have proven nothing yet. The oldest one makes room for the next.
const MOST_UNPROVEN: usize = 256;

/// Whose connection it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// No request with a right token has come yet.
    Unproven,
    Operator,
    AgentOf(GoalId),
}

/// All connections, the oldest first.
#[derive(Default)]
pub(crate) struct Places(Mutex<Connections>);

#[derive(Default)]
struct Connections {
    next: u64,
    held: BTreeMap<u64, (Holder, Arc<Notify>)>,
}

impl Connections {
    fn count(&self, is_one: impl Fn(Holder) -> bool) -> usize {
        self.held.values().filter(|(holder, _)| is_one(*holder)).count()
    }

    fn has_room_for(&self, holder: Holder) -> bool {
        match holder {
            Holder::Unproven => self.count(|other| other == holder) < MOST_UNPROVEN,
            Holder::Operator => self.count(|other| other == holder) < MOST_OF_OPERATOR,
            Holder::AgentOf(_) => {
                self.count(|other| other == holder) < MOST_OF_GOAL
                    && self.count(|other| matches!(other, Holder::AgentOf(_))) < MOST_OF_AGENTS
            }
        }
    }
}

/// The place of one connection; given back with this.
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    revoked: Arc<Notify>,
}

impl Places {
    /// The place of a new connection. If there are too many that have proven nothing, the oldest of them loses its place.
    pub(crate) fn enter(self: &Arc<Self>) -> Place {
        let mut connections = self.lock();
        if !connections.has_room_for(Holder::Unproven) {
            let mut held = connections.held.iter();
            let oldest = held.find(|(_, (holder, _))| *holder == Holder::Unproven).map(|(number, _)| *number);
            if let Some((_, revoked)) = oldest.and_then(|oldest| connections.held.remove(&oldest)) {
                revoked.notify_one();
            }
        }
        let (number, revoked) = (connections.next, Arc::new(Notify::new()));
        connections.next += 1;
        connections.held.insert(number, (Holder::Unproven, Arc::clone(&revoked)));
        Place { places: Arc::clone(self), number, revoked }
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Whether a request of the operator on this new connection must not come from an agent: it could keep the operator out.
    pub(crate) fn is_contested(&self, authority: &Authority) -> bool {
        let connections = self.places.lock();
        let is_new =
            connections.held.get(&self.number).is_some_and(|(holder, _)| *holder != Holder::Operator);
        let taken = connections.count(|holder| holder == Holder::Operator);
        matches!(authority, Authority::Operator) && is_new && taken >= UNCHECKED
    }

    /// Gives the connection to whoever has sent a request on it. False if they have too many.
    pub(crate) fn prove(&self, authority: &Authority) -> bool {
        let holder = match authority {
            Authority::Operator => Holder::Operator,
            Authority::Agent { goal, .. } => Holder::AgentOf(*goal),
            Authority::Anybody => return true,
        };
        let mut connections = self.places.lock();
        let has_room = connections.has_room_for(holder);
        match connections.held.get_mut(&self.number) {
            Some((current, _)) if *current == holder => true,
            Some((current, _)) if has_room => {
                *current = holder;
                true
            }
            _ => false,
        }
    }

    /// Waits until another connection needs the place.
    pub(crate) async fn revoked(&self) {
        self.revoked.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().held.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn agent_of(goal: u128) -> Authority {
        let goal = format!("{goal:032x}").parse().expect("an id");
        Authority::Agent { goal, token: String::new() }
    }

    fn admitted(places: &Arc<Places>, authority: &Authority, count: usize) -> Vec<Place> {
        let entered = (0..count).map(|_| places.enter());
        entered.filter(|place| place.prove(authority)).collect()
    }

    #[test]
    fn agents_and_strangers_leave_the_operator_all_of_its_places() {
        let places = Arc::new(Places::default());
        let mut held = admitted(&places, &agent_of(1), 1000);
        assert_eq!(held.len(), MOST_OF_GOAL);
        for number in 2..100 {
            held.extend(admitted(&places, &agent_of(number), MOST_OF_GOAL));
        }
        assert_eq!(held.len(), MOST_OF_AGENTS);
        let _strangers: Vec<Place> = (0..1000).map(|_| places.enter()).collect();
        let own = admitted(&places, &Authority::Operator, 1000);
        assert_eq!(own.len(), MOST_OF_OPERATOR);
        // Places are given back, and a connection keeps its own.
        drop(held);
        assert_eq!(admitted(&places, &agent_of(1), 1).len(), 1);
        assert!(own.iter().all(|place| place.prove(&Authority::Operator)));
    }

    #[test]
    fn the_oldest_connection_that_has_proven_nothing_makes_room() {
        let places = Arc::new(Places::default());
        let proven = admitted(&places, &Authority::Operator, 1);
        let strangers: Vec<Place> = (0..=MOST_UNPROVEN).map(|_| places.enter()).collect();
        let is_revoked = |place: &Place| place.revoked().now_or_never().is_some();
        assert!(is_revoked(&strangers[0]));
        assert!(!strangers[0].prove(&Authority::Operator), "its place is gone");
        assert!(!strangers[1..].iter().chain(&proven).any(is_revoked));
    }
}
