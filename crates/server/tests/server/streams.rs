//! Server-sent events: each event exactly once, whatever happens to the connection.

use futures::future::join_all;
use serde_json::json;
use towline_core::GoalId;
use towline_engine::{Reply, Request, ask_engine};

use crate::client::{Ask, Stream};
use crate::server::Server;

/// Follows until the event with this place, and hangs up after every `cut` events.
async fn follow_with_cuts(ask: Ask, until: u64, cut: usize) -> (Vec<u64>, usize) {
    let (mut seen, mut cuts) = (Vec::new(), 0);
    while seen.last() != Some(&until) {
        let ask = match seen.last() {
            Some(last) => ask.clone().header("last-event-id", &last.to_string()),
            None => ask.clone(),
        };
        let mut stream = ask.follow().await;
        for _ in 0..cut {
            let Some(sent) = stream.next().await else { break };
            assert_eq!(sent.name, "event");
            seen.push(sent.id.expect("events of the log have a place"));
            if seen.last() == Some(&until) {
                break;
            }
        }
        cuts += 1;
    }
    (seen, cuts)
}

fn following(server: &Server, path: &str) -> Ask {
    server.get(path).header("accept", "text/event-stream")
}

#[tokio::test]
async fn a_client_that_is_cut_off_many_times_gets_every_event_of_a_goal_once() {
    let server = Server::start().await;
    let goal = server.goal().await.id;
    let ask = following(&server, &format!("/goals/{goal}/events"));
    let writing = async {
        for _ in 0..60 {
            server.write(goal, 5).await;
            tokio::task::yield_now().await;
        }
    };
    let ((seen, cuts), ()) = tokio::join!(follow_with_cuts(ask, 301, 6), writing);
    assert_eq!(seen, (1..=301).collect::<Vec<_>>());
    assert!(cuts >= 50, "{cuts}");
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_is_cut_off_many_times_gets_every_event_of_the_pool_once() {
    let server = Server::start().await;
    let goals: Vec<GoalId> = [server.goal().await.id, server.goal().await.id].to_vec();
    let ask = following(&server, "/events?cursor=0");
    let writing = async {
        for round in 0..60 {
            server.write(goals[round % 2], 5).await;
            tokio::task::yield_now().await;
        }
    };
    let ((seen, cuts), ()) = tokio::join!(follow_with_cuts(ask, 302, 6), writing);
    assert_eq!(seen, (1..=302).collect::<Vec<_>>());
    assert!(cuts >= 50, "{cuts}");
    server.stop().await;
}

/// How many events are written while a client follows, and how often it is cut off.
const MANY_EVENTS: u64 = 100_000;
const MANY_CUTS: u64 = 50;

/// Fills the log in batches, as fast as the store takes them.
async fn write_many(server: &Server, goals: &[GoalId]) {
    const BATCH: usize = 500;
    for (_, goal) in (0..MANY_EVENTS).step_by(BATCH).zip(goals.iter().cycle()) {
        server.write(*goal, BATCH).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_that_is_cut_off_fifty_times_gets_each_of_a_hundred_thousand_events_once() {
    let server = Server::start_on_disk().await;
    let goals = [server.goal().await.id, server.goal().await.id, server.goal().await.id];
    let until = MANY_EVENTS + goals.len() as u64;
    let cut = usize::try_from(until / MANY_CUTS).expect("a count");
    let ask = following(&server, "/events?cursor=0");
    let ((seen, cuts), ()) = tokio::join!(follow_with_cuts(ask, until, cut), write_many(&server, &goals));
    assert_eq!(seen, (1..=until).collect::<Vec<_>>());
    assert!(cuts as u64 > MANY_CUTS, "{cuts}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_of_one_goal_that_is_cut_off_fifty_times_gets_each_of_a_hundred_thousand_events_once() {
    let server = Server::start_on_disk().await;
    let goals = [server.goal().await.id];
    let until = MANY_EVENTS + 1;
    let cut = usize::try_from(until / MANY_CUTS).expect("a count");
    let ask = following(&server, &format!("/goals/{}/events", goals[0]));
    let ((seen, cuts), ()) = tokio::join!(follow_with_cuts(ask, until, cut), write_many(&server, &goals));
    assert_eq!(seen, (1..=until).collect::<Vec<_>>());
    assert!(cuts as u64 > MANY_CUTS, "{cuts}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_clients_lose_nothing_while_the_pool_is_busy() {
    let server = Server::start_on_disk().await;
    let mut goals = Vec::new();
    for _ in 0..4 {
        goals.push(server.goal().await.id);
    }
    let streams: Vec<Stream> =
        join_all((0..200).map(|_| following(&server, "/events?cursor=0").follow())).await;
    let count = 4 + 40 * 10;
    let reading = join_all(streams.into_iter().map(|mut stream| async move {
        for place in 1..=count {
            let sent = stream.next().await.expect("an event");
            assert_eq!(sent.id, Some(place));
        }
    }));
    let writing = async {
        for round in 0..40 {
            server.write(goals[round % 4], 10).await;
        }
    };
    tokio::join!(reading, writing);
    server.stop().await;
}

#[tokio::test]
async fn a_place_that_no_event_has_begins_again_and_the_stream_reports_where() {
    let server = Server::start().await;
    let goal = server.goal().await.id;
    let mut pool = following(&server, "/events").header("last-event-id", "90").follow().await;
    let first = pool.next().await.expect("an event");
    assert_eq!((first.name.as_str(), first.id), ("restart", Some(1)));
    server.write(goal, 1).await;
    let next = pool.next().await.expect("an event");
    assert_eq!((next.name.as_str(), next.id), ("event", Some(2)));
    let path = format!("/goals/{goal}/events");
    let mut log = following(&server, &path).header("last-event-id", "3").follow().await;
    let first = log.next().await.expect("an event");
    assert_eq!((first.name.as_str(), first.id), ("restart", Some(0)));
    assert_eq!(log.next().await.expect("an event").id, Some(1));
    // The last one is a place, and what is not there yet follows it.
    for (path, last) in [("/events", 2), (path.as_str(), 2)] {
        let mut stream = following(&server, path).header("last-event-id", &last.to_string()).follow().await;
        server.write(goal, 1).await;
        assert_eq!(stream.next().await.expect("an event").name, "event", "{path}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_removed_goal_is_reported_to_those_who_follow_all_goals() {
    let server = Server::start().await;
    let goal = server.goal().await.id;
    let mut stream = following(&server, "/events").follow().await;
    let removed = Request::Removed { goal };
    let reply = ask_engine(&server.home, &server.worker, &removed).await.expect("an answer");
    assert_eq!(reply, Some(Reply::Accepted));
    let sent = stream.next().await.expect("an event");
    let wanted = ("removed", None, &json!({"goal": goal.to_string()}));
    assert_eq!((sent.name.as_str(), sent.id, &sent.data), wanted);
    server.stop().await;
}

#[tokio::test]
async fn a_stream_without_a_place_begins_now_and_one_too_many_is_sent_away() {
    let server = Server::start().await;
    let goal = server.goal().await.id;
    let mut stream = following(&server, "/events").follow().await;
    server.write(goal, 1).await;
    assert_eq!(stream.next().await.expect("an event").id, Some(2));
    let others: Vec<Stream> = join_all((0..239).map(|_| following(&server, "/events").follow())).await;
    following(&server, "/events").send().await.refused(503);
    drop(others);
    following(&server, &format!("/goals/{goal}/events"))
        .header("last-event-id", "x")
        .send()
        .await
        .refused(400);
    server.stop().await;
}
