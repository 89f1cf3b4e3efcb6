//! Listing, creating and showing goals; reading their logs and what they changed.

use serde_json::{Value, json};
use towline_core::{Goal, Need, Prerequisite};

use crate::server::{Server, TOKEN};

#[tokio::test]
async fn a_goal_is_created_from_json_and_waits_in_the_queue() {
    let server = Server::start().await;
    let first = server.goal().await;
    let new = json!({
        "prompt": "Add a test", "repository": server.project.path(), "checks": ["true"], "agents": ["own"],
        "budget": {"usd": 2.5, "wall": "1h"}, "after": [{"goal": first.id.to_string()}], "priority": 3,
        "labels": ["database"], "touches": ["src/**"], "metadata": {"ticket": 7},
        "origin": {"channel": "chat", "thread": "t1", "by": "ann"},
    });
    let created = server.post("/goals").json(&new).send().await;
    assert_eq!(created.status, 201, "{created:?}");
    let goal = created.json();
    assert_eq!(created.headers["location"], format!("/api/v1/goals/{}", goal["id"].as_str().expect("an id")));
    assert_eq!(goal["phase"], "queued");
    assert_eq!(goal["labels"], json!(["database"]));
    assert_eq!(goal["metadata"], json!({"ticket": 7}));
    assert_eq!(goal["origin"], json!({"channel": "chat", "thread": "t1", "by": "ann"}));
    assert_eq!(goal["budget"]["usd"]["limit"], 2.5);
    let record = server.store.load(goal["id"].as_str().expect("an id").parse().expect("an id")).await;
    let scheduling = record.expect("stored").goal.scheduling;
    assert_eq!(
        (scheduling.priority, scheduling.after.len(), scheduling.touches),
        (3, 1, vec!["src/**".to_owned()])
    );
    server.stop().await;
}

#[tokio::test]
async fn a_goal_that_makes_no_sense_is_refused_and_not_created() {
    let server = Server::start().await;
    let here = server.project.path();
    for (new, status) in [
        (json!({"prompt": "x"}), 400),
        (json!({"prompt": "x", "repository": here, "pompt": "y"}), 400),
        (json!({"prompt": " ", "repository": here}), 422),
        (json!({"prompt": "x", "repository": "relative"}), 422),
        (json!({"prompt": "x", "repository": "/no/such/directory"}), 422),
        (json!({"prompt": "x", "repository": here, "agents": ["nobody"]}), 422),
        (json!({"prompt": "x", "repository": here, "budget": {"usd": 0}}), 422),
        (json!({"prompt": "x", "repository": here, "budget": {"gold": 1}}), 422),
        (json!({"prompt": "x", "repository": here, "labels": [""]}), 422),
        (json!({"prompt": "x\u{0}", "repository": here}), 422),
        (json!({"prompt": "x", "repository": here, "agents": []}), 422),
        (json!({"prompt": "x", "repository": here, "priority": 1_001}), 422),
        (json!({"prompt": "x", "repository": here, "priority": i32::MIN}), 422),
        (json!({"prompt": "x", "repository": here, "priority": i32::MAX}), 422),
        (json!({"prompt": "x", "repository": here, "after": [{"goal": "../x"}]}), 400),
        (
            json!({"prompt": "x", "repository": here, "after": [{"goal": "01932f6e-7c00-7abc-8def-0123456789ab"}]}),
            422,
        ),
    ] {
        server.post("/goals").json(&new).send().await.refused(status);
    }
    server.post("/goals").body("application/json", "{").send().await.refused(400);
    assert_eq!(server.get("/goals").send().await.json()["goals"], json!([]));
    server.stop().await;
}

#[tokio::test]
async fn a_goal_may_start_from_what_its_only_prerequisite_leaves() {
    let server = Server::start().await;
    let (first, second) = (server.goal().await, server.goal().await);
    let elsewhere = server.goal_of(|goal| goal.workspace.repository = "/elsewhere".to_owned()).await;
    let new = |after: &[&Goal]| {
        let after: Vec<Value> = after.iter().map(|goal| json!({"goal": goal.id.to_string()})).collect();
        json!({"prompt": "x", "repository": server.project.path(), "base": "prerequisite", "after": after})
    };
    let created = server.post("/goals").json(&new(&[&first])).send().await;
    assert_eq!(created.status, 201, "{created:?}");
    let id = created.json()["id"].as_str().expect("an id").parse().expect("an id");
    let scheduling = server.store.load(id).await.expect("stored").goal.scheduling;
    assert!(scheduling.base_is_prerequisite, "{scheduling:?}");
    assert_eq!(scheduling.after, [Prerequisite { goal: first.id, need: Need::Done }]);
    for (after, detail) in [
        (&[][..], "`base = \"prerequisite\"` needs exactly one goal in `after`"),
        (&[&first, &second], "`base = \"prerequisite\"` needs exactly one goal in `after`"),
        (&[&elsewhere], "`base = \"prerequisite\"` needs a goal of this repository that works in a clone"),
    ] {
        let problem = server.post("/goals").json(&new(after)).send().await.refused(422);
        assert_eq!(problem["detail"], detail);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_goal_that_works_in_place_is_refused_because_it_would_wait() {
    let server = Server::start().await;
    let settings =
        std::fs::read_to_string(server.project.path().join("towline.toml")).expect("a configuration");
    server.project.write("towline.toml", format!("{settings}[workspace]\nmode = \"in-place\"\n"));
    server.trust();
    let before = server.everything().await;
    let new = json!({"prompt": "x", "repository": server.project.path(), "checks": ["true"]});
    let problem = server.post("/goals").json(&new).send().await.refused(422);
    assert_eq!(problem["detail"], "a goal that works in place cannot wait in the queue");
    assert_eq!(server.everything().await, before);
    server.stop().await;
}

#[tokio::test]
async fn a_file_that_needs_trust_creates_no_goal_before_it_is_accepted() {
    let server = Server::start().await;
    let settings = server.project.read("towline.toml");
    server.project.write("towline.toml", format!("{settings}permission = \"bypass\"\n"));
    let before = server.everything().await;
    let new = json!({"prompt": "x", "repository": server.project.path(), "checks": ["true"]});
    let problem = server.post("/goals").json(&new).send().await.refused(422);
    let sets = "`agents.own.command`, `agents.own.kind` and `agents.own.permission`";
    let detail = format!("this repository's towline.toml sets {sets}, which need your trust");
    assert_eq!(problem["detail"], detail);
    let file = server.project.path().join("towline.toml");
    assert_eq!(problem["hint"], format!("read {}, then run `towline trust` there", file.display()));
    assert_eq!(server.everything().await, before);
    server.trust();
    assert_eq!(server.post("/goals").json(&new).send().await.status, 201);
    server.stop().await;
}

#[tokio::test]
async fn a_goal_that_requires_a_sandbox_is_refused_where_none_works() {
    let server = Server::start().await;
    let settings =
        std::fs::read_to_string(server.project.path().join("towline.toml")).expect("a configuration");
    // No sandbox can start the program of this server as Towline.
    server.project.write("towline.toml", format!("{settings}[sandbox]\nmode = \"required\"\n"));
    server.trust();
    let before = server.everything().await;
    let new = json!({"prompt": "x", "repository": server.project.path(), "checks": ["true"]});
    let problem = server.post("/goals").json(&new).send().await.refused(422);
    let detail = problem["detail"].as_str().expect("a text");
    assert!(detail.starts_with("`mode = \"required\"` in [sandbox], and none works here: "), "{detail}");
    assert_eq!(server.everything().await, before);
    server.stop().await;
}

#[tokio::test]
async fn pages_of_goals_show_each_goal_once() {
    let server = Server::start().await;
    let mut wanted = Vec::new();
    for _ in 0..5 {
        wanted.insert(0, server.goal().await.id.to_string());
    }
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/goals?limit=2&cursor={cursor}")).send().await.json();
        for goal in page["goals"].as_array().expect("a list") {
            listed.push(goal["id"].as_str().expect("an id").to_owned());
        }
        match page["cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(listed, wanted);
    let of = async |filter: &str| {
        let page = server.get(&format!("/goals?{filter}")).send().await.json();
        page["goals"].as_array().expect("a list").len()
    };
    assert_eq!(of("phase=queued").await, 5);
    assert_eq!(of("phase=done,failed").await, 0);
    assert_eq!(of("repository=/elsewhere").await, 0);
    for wrong in ["phase=sleepy", "phase=", "limit=", "limit=0", "limit=9999", "cursor=zz", "pahse=done"] {
        server.get(&format!("/goals?{wrong}")).send().await.refused(400);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_goal_that_has_not_changed_is_not_sent_again() {
    let server = Server::start().await;
    let goal = server.goal().await;
    let path = format!("/goals/{}", goal.id);
    let first = server.get(&path).send().await;
    assert_eq!((first.status, first.json()["id"].as_str()), (200, Some(goal.id.to_string().as_str())));
    let tag = first.headers["etag"].clone();
    let same = server.get(&path).header("if-none-match", &tag).send().await;
    assert_eq!((same.status, same.body.as_str()), (304, ""));
    server.write(goal.id, 1).await;
    let changed = server.get(&path).header("if-none-match", &tag).send().await;
    assert_eq!(changed.status, 200);
    assert_ne!(changed.headers["etag"], tag);
    server.stop().await;
}

#[tokio::test]
async fn the_beginning_of_an_id_names_a_goal_if_it_is_the_only_one() {
    let server = Server::start().await;
    let (goal, other) = (server.goal().await, server.goal().await);
    let id = goal.id.to_string();
    for given in [&id, &id.replace('-', ""), &goal.id.short(), &goal.id.short()[..7], &id.to_uppercase()] {
        let shown = server.get(&format!("/goals/{given}")).send().await;
        assert_eq!((shown.status, shown.json()["id"].as_str()), (200, Some(id.as_str())), "{given}");
    }
    let events = server.get(&format!("/goals/{}/events", goal.id.short())).send().await;
    assert_eq!((events.status, events.json()["events"][0]["goal"].as_str()), (200, Some(id.as_str())));
    let cancelled = server.post(&format!("/goals/{}/cancel", other.id.short())).send().await;
    assert_eq!((cancelled.status, &cancelled.json()["phase"]), (200, &json!("cancelled")));
    // Both were created in the same era.
    server.get("/goals/01").send().await.refused(422);
    server.get("/goals/ffff").send().await.refused(404);
    for wrong in ["@", "zz", "..", &format!("{id}0")] {
        server.get(&format!("/goals/{wrong}")).send().await.refused(400);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_project_that_does_not_answer_holds_up_no_list_and_its_goals_can_be_cancelled() {
    let server = Server::start().await;
    let goal = server.goal().await.id;
    let silent = server.silence_project().await;
    let page = server.get("/goals").send().await.json();
    assert_eq!(
        (&page["goals"][0]["id"], &page["goals"][0]["prompt"]),
        (&json!(goal.to_string()), &Value::Null)
    );
    assert_eq!(server.get(&format!("/goals/{goal}")).send().await.status, 200);
    let refused = server.post(&format!("/goals/{goal}/merge")).json(&json!({})).send().await.refused(503);
    assert!(refused["detail"].as_str().expect("a reason").contains("does not answer"), "{refused}");
    server.get(&format!("/goals/{goal}/diff")).send().await.refused(503);
    let new = json!({"prompt": "x", "repository": server.project.path()});
    server.post("/goals").json(&new).send().await.refused(503);
    assert_eq!(server.post(&format!("/goals/{goal}/cancel")).send().await.json()["phase"], "cancelled");
    drop(silent);
    server.stop().await;
}

#[tokio::test]
async fn the_log_is_read_in_pages() {
    let server = Server::start().await;
    let goal = server.goal().await;
    server.write(goal.id, 7).await;
    let (mut places, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/goals/{}/events?limit=3&cursor={cursor}", goal.id);
        let page = server.get(&path).send().await.json();
        let events = page["events"].as_array().expect("a list");
        places.extend(events.iter().map(|event| event["seq"].as_u64().expect("a place")));
        match page["cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(places, (1..=8).collect::<Vec<_>>());
    server.stop().await;
}

#[tokio::test]
async fn the_output_of_an_attempt_is_sent_in_ranges_without_secrets() {
    let server = Server::start().await;
    let (goal, token) = server.goal_at_work().await;
    let path = format!("/goals/{}/attempts/1/log", goal.id);
    server.get(&path).send().await.refused(404);
    let directory = server.home.attempt(goal.id, towline_core::AttemptNo::FIRST);
    std::fs::create_dir_all(&directory).expect("a directory");
    let text = format!("first\nmy token is {token}\nnot {TOKEN}\nlast\n");
    std::fs::write(directory.join("stdout.log"), &text).expect("written");
    let whole = server.get(&path).send().await;
    assert_eq!((whole.status, whole.body.len()), (200, text.len()));
    assert!(
        whole.body.starts_with("first\nmy token is [masked") && whole.body.ends_with("\nlast\n"),
        "{whole:?}"
    );
    assert!(!whole.body.contains(TOKEN), "{whole:?}");
    let end = server.get(&path).header("range", "bytes=-5").send().await;
    assert_eq!((end.status, end.body.as_str()), (206, "last\n"));
    let length = text.len();
    assert_eq!(end.headers["content-range"], format!("bytes {}-{}/{length}", length - 5, length - 1));
    server.get(&path).header("range", &format!("bytes={length}-")).send().await.refused(416);
    // A unit that is not known is as good as none (RFC 9110).
    let other = server.get(&path).header("range", "lines=1-2").send().await;
    assert_eq!((other.status, other.body), (200, whole.body));
    server.get(&format!("/goals/{}/attempts/2/log", goal.id)).send().await.refused(404);
    server.stop().await;
}

#[tokio::test]
async fn a_goal_without_work_has_no_diff_and_cannot_be_merged() {
    let server = Server::start().await;
    let goal = server.goal().await;
    server.get(&format!("/goals/{}/diff", goal.id)).send().await.refused(404);
    let merge = server.post(&format!("/goals/{}/merge", goal.id));
    merge.clone().json(&json!({"dry_run": true})).send().await.refused(422);
    merge.json(&json!({"squash": true, "no_ff": true})).send().await.refused(422);
    server.stop().await;
}
