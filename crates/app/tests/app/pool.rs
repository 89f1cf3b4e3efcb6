//! Goals of a pool: what is queued, why it waits, what its prerequisites leave to it, what it spent.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use towline_api::ErrorKind;
use towline_app::{
    Added, CostBy, Error, Holds, Notice, Request, Rules, accounts, add, cost, goal_requests, open_account,
    queue,
};
use towline_core::{
    Account, AccountStatus, AgentName, Commit, Envelope, EscalationReason, Event, Goal, GoalState, Need,
    Phase, Prerequisite, Scheduling, Source, Unavailable,
};
use towline_engine::PoolRules;
use towline_store::GoalRecord;

use crate::desk::Desk;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

impl Desk {
    async fn add_files(&self, paths: &[&str]) -> Result<Vec<Added>, Error> {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        add(&self.context(), &goal_requests(&self.context(), &paths, &Request::default())?, NOW).await
    }

    /// What the user's own file sets.
    pub(crate) fn configure(&self, text: &str) {
        let folder = self.home.config().join("towline");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("config.toml"), text).expect("written");
    }

    pub(crate) async fn add_prompt(&self, prompt: &str, request: Request) -> GoalRecord {
        let request = Request { prompt: Some(prompt.to_owned()), ..request };
        add(&self.context(), &[request], NOW).await.expect("added").remove(0).record
    }
}

fn words(outcome: Result<Vec<Added>, Error>) -> (ErrorKind, String) {
    let error = outcome.err().expect("an error");
    (error.kind(), error.message())
}

#[tokio::test]
async fn goals_of_a_folder_may_name_each_other_and_are_queued_in_that_order() {
    let desk = Desk::new("");
    desk.project
        .write("goals/a.md", "---\nafter: [b, {goal: ./c.toml, need: merged}]\npriority: 2\n---\nfirst\n");
    desk.project.write("goals/b.md", "---\nafter: [c.toml]\ntouches: [src/**]\nlabels: [x]\n---\nsecond\n");
    desk.project.write("goals/c.toml", "prompt = \"third\"\n");
    desk.project.write("goals/notes.txt", "no goal");
    let added = desk.add_files(&["goals"]).await.expect("added");
    let prompts: Vec<&str> = added.iter().map(|added| added.record.goal.prompt.as_str()).collect();
    assert_eq!(prompts, ["third", "second", "first"]);
    let [third, second, first] = [0, 1, 2].map(|n| &added[n].record.goal);
    let after = |goal, need| Prerequisite { goal, need };
    let search_path = desk.context().variable("PATH").map(str::to_owned);
    let waits = |after| Scheduling { after, search_path: search_path.clone(), ..Scheduling::default() };
    assert_eq!(third.scheduling, waits(vec![]));
    let touches = vec!["src/**".to_owned()];
    assert_eq!(second.scheduling, Scheduling { touches, ..waits(vec![after(third.id, Need::Done)]) });
    let mut both = vec![after(second.id, Need::Done), after(third.id, Need::Merged)];
    both.sort();
    assert_eq!(first.scheduling, Scheduling { priority: 2, ..waits(both) });
    assert_eq!(second.labels, ["x"]);
    assert!(
        added.iter().all(|added| added.record.state.phase == Phase::Queued && added.record.lease.is_none())
    );
    assert!(added[0].notices.contains(&Notice::NoChecks));
}

#[tokio::test]
async fn a_folder_that_is_added_again_adds_exactly_what_is_missing() {
    let desk = Desk::new("");
    desk.project.write("goals/a.md", "---\nafter: [b]\nworkspace: {base: prerequisite}\n---\nfirst\n");
    desk.project.write("goals/b.md", "second\n");
    desk.project.write("goals/c.md", "second\n");
    desk.project.write("goals/d.md", "---\nafter: [c]\ntemplate: true\n---\n{{ prerequisites[0].title }}\n");
    let earlier = desk.add_files(&["goals/b.md"]).await.expect("added").remove(0).record.goal.id;
    let known =
        |added: &[Added]| added.iter().map(|added| (added.record.goal.id, added.is_new)).collect::<Vec<_>>();
    let folder = desk.add_files(&["goals"]).await.expect("added");
    assert_eq!(folder.iter().map(|added| added.is_new).collect::<Vec<_>>(), [false, true, true, true]);
    assert_eq!(folder[0].record.goal.id, earlier);
    assert_eq!(folder[1].record.goal.scheduling.after, [Prerequisite { goal: earlier, need: Need::Done }]);
    let all: Vec<_> = folder.iter().map(|added| (added.record.goal.id, false)).collect();
    desk.project.write("README.md", "moved on\n");
    desk.project.commit("another base");
    assert_eq!(known(&desk.add_files(&["goals"]).await.expect("added")), all, "all are there");
    assert_eq!(queue(&desk.context(), NOW).await.expect("a report").waiting.len(), 4);

    // What a person changes or types is another goal.
    desk.project.write("goals/b.md", "---\npriority: 1\n---\nsecond\n");
    let changed = desk.add_files(&["goals/b.md"]).await.expect("added").remove(0);
    assert!(changed.is_new && changed.notices.iter().any(|notice| matches!(notice, Notice::AddedBefore(_))));
    let typed = Request { prompt: Some("second".to_owned()), ..Request::default() };
    assert!(add(&desk.context(), &[typed], NOW).await.expect("added")[0].is_new);
}

#[tokio::test]
async fn a_file_is_not_added_again_however_many_goals_were_added_after_it() {
    let desk = Desk::new("");
    desk.project.write("goal.md", "first\n");
    let first = desk.add_files(&["goal.md"]).await.expect("added").remove(0).record.goal;
    let others: Vec<_> = (1..=1_000)
        .map(|number| {
            let created_at = NOW.checked_add(jiff::SignedDuration::from_secs(number)).expect("in range");
            let id = format!("01890a5d-ac96-774b-bcce-{number:012x}").parse().expect("an id");
            let other = Goal { id, created_at, title: "other".to_owned(), ..first.clone() };
            let created = Envelope::new(other.id, created_at, Source::Operator, Event::Created);
            (other.clone(), GoalState::new(&other), created)
        })
        .collect();
    desk.context().state().expect("a state directory").store.create_all(&others).await.expect("stored");
    let again = desk.add_files(&["goal.md"]).await.expect("added").remove(0);
    assert_eq!((again.record.goal.id, again.is_new), (first.id, false));
}

#[tokio::test]
async fn a_folder_that_is_added_twice_at_the_same_time_is_added_once() {
    let desk = Desk::new("");
    for name in ["a", "b", "c"] {
        desk.project.write(format!("goals/{name}.md"), format!("{name}\n"));
    }
    let (one, other) = tokio::join!(desk.add_files(&["goals"]), desk.add_files(&["goals"]));
    let new = [one, other].map(|added| added.expect("added").iter().filter(|added| added.is_new).count());
    assert_eq!(new.iter().sum::<usize>(), 3, "{new:?}");
    assert_eq!(queue(&desk.context(), NOW).await.expect("a report").waiting.len(), 3);
}

#[tokio::test]
async fn nothing_is_queued_when_one_goal_is_refused() {
    let desk = Desk::new("");
    desk.project.write("goals/a.md", "---\nafter: [b.md]\n---\na\n");
    desk.project.write("goals/b.md", "---\nafter: [c]\n---\nb\n");
    desk.project.write("goals/c.md", "---\nafter: [a]\n---\nc\n");
    let cycle =
        (ErrorKind::Usage, "these goals wait for each other: a.md -> b.md -> c.md -> a.md".to_owned());
    assert_eq!(words(desk.add_files(&["goals"]).await), cycle);
    let alone = (ErrorKind::Usage, "`after` names `b.md`, and there is no such goal".to_owned());
    assert_eq!(words(desk.add_files(&["goals/a.md"]).await), alone);
    desk.project.write("goals/c.md", "---\nworkspace: {mode: in-place}\n---\nc\n");
    let in_place = "goals/c.md: a goal that works in place cannot wait in the queue".to_owned();
    assert_eq!(words(desk.add_files(&["goals"]).await), (ErrorKind::Usage, in_place));
    desk.project.write("goals/c.md", "---\nafter: [a]\ntemplate: true\n---\n{{ prerequisites }}\n");
    desk.project.write("goals/a.md", "---\nafter: [zzzz]\n---\na\n");
    let unknown = "goals/a.md: `after` names `zzzz`, and there is no such goal".to_owned();
    assert_eq!(words(desk.add_files(&["goals"]).await), (ErrorKind::Usage, unknown));
    desk.project.write("goals/a.md", "a\n");
    desk.project.write("goals/c.md", "---\ntemplate: true\n---\n{{ prerequisites }}\n");
    let alone = "goals/c.md: the prompt uses `prerequisites`, and the goal waits for no other".to_owned();
    assert_eq!(words(desk.add_files(&["goals"]).await), (ErrorKind::Usage, alone));
    std::fs::create_dir(desk.project.path().join("empty")).expect("a folder");
    assert_eq!(words(desk.add_files(&["empty"]).await).1, "empty has no goals");
    let twice = (ErrorKind::Usage, "goals/../goals/a.md is given twice".to_owned());
    assert_eq!(words(desk.add_files(&["goals", "goals/../goals/a.md"]).await), twice);
    let queued = queue(&desk.context(), NOW).await.expect("a report");
    assert_eq!((queued.waiting, queued.running), (vec![], vec![]));
}

#[tokio::test]
async fn a_goal_inherits_the_work_and_the_words_of_its_prerequisite_as_data() {
    let desk = Desk::new("");
    let earlier = desk.add_prompt("earlier", Request::default()).await;
    let id = earlier.goal.id;
    let base = |after: &str| {
        let text = format!(
            "---\ntemplate: true\ncontext: {{who: Ada}}\nafter: {after}\nworkspace: {{base: prerequisite}}\n---\n\
             {{{{ who }}}}{{% for p in prerequisites %}} {{{{ p.title }}}} {{{{ p.candidate }}}} {{{{ p.branch }}}} {{{{ p.summary }}}}{{% endfor %}}\n"
        );
        desk.project.write("goal.md", text);
    };
    base("[]");
    assert!(words(desk.add_files(&["goal.md"]).await).1.contains("waits for no other"));
    let other = desk.add_prompt("other", Request::default()).await.goal.id;
    base(&format!("[{id}, {other}]"));
    let two = words(desk.add_files(&["goal.md"]).await).1;
    assert_eq!(two, "`base = \"prerequisite\"` needs exactly one goal in `after`");
    base(&format!("[{}]", id.short()));
    let goal = desk.add_files(&["goal.md"]).await.expect("added").remove(0).record.goal;
    assert!(goal.scheduling.base_is_prerequisite && goal.scheduling.template.is_some());

    let rules = Rules::new(&desk.context(), None).expect("rules");
    let nothing = rules.inherited(&goal, std::slice::from_ref(&earlier));
    assert_eq!(nothing, Err(format!("goal {} has left no commit", id.short())));
    let mut ended = earlier;
    ended.state.candidate = Some(Commit::new("c0ffee"));
    ended.state.branch = Some("towline/x".to_owned());
    let inherited = rules.inherited(&goal, &[ended]).expect("inherited");
    assert_eq!(inherited.base, Some(Commit::new("c0ffee")));
    assert_eq!(inherited.prompt.as_deref(), Some("Ada earlier c0ffee towline/x "));
}

#[tokio::test]
async fn every_waiting_goal_has_its_reason() {
    let desk = Desk::new("");
    desk.configure("[caps]\nlabels = { slow = 1 }\n");
    let context = desk.context();
    let labelled = |labels: &[&str]| Request {
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        ..Request::default()
    };
    let free = desk.add_prompt("free", Request::default()).await;
    let slow = desk.add_prompt("slow", labelled(&["slow"])).await;
    let slower = desk.add_prompt("slower", Request { priority: Some(-1), ..labelled(&["slow"]) }).await;
    let later = desk
        .add_prompt(
            "later",
            Request { after: vec![(free.goal.id.to_string(), Need::Done)], ..Request::default() },
        )
        .await;
    let report = queue(&context, NOW).await.expect("a report");
    let waiting: Vec<(&str, &str)> = report
        .waiting
        .iter()
        .map(|line| (line.title.as_str(), line.hold.as_ref().map_or("", |hold| hold.text.as_str())))
        .collect();
    let waits = format!("waits for {} (queued)", free.goal.id.short());
    let expected = [
        ("free", "no server is running"),
        ("slow", "no server is running"),
        ("later", waits.as_str()),
        ("slower", "waits for a slot (cap 1 of label slow)"),
    ];
    assert_eq!(waiting, expected);
    assert_eq!((report.server, report.running, report.more), (None, vec![], false));
    let after = &report.waiting[2].after[0];
    assert_eq!(
        (after.goal.clone(), after.need.as_str(), after.met),
        (free.goal.id.to_string(), "done", false)
    );

    // One goal alone has the same reason as in the list.
    let state = context.state().expect("a state directory");
    let alone = |record: GoalRecord| {
        let (context, state) = (&context, &state);
        async move {
            let id = record.goal.id;
            let holds = Holds::of_records(context, state, &[record], NOW).await.expect("holds");
            holds.report(id, NOW).map(|hold| (hold.reason, hold.text))
        }
    };
    let held = |reason: &str, text: &str| Some((reason.to_owned(), text.to_owned()));
    assert_eq!(alone(slower).await, held("slot", "waits for a slot (cap 1 of label slow)"));
    assert_eq!(alone(later).await, held("prerequisite", &waits));
    assert_eq!(alone(slow).await, held("no_server", "no server is running"));
}

#[tokio::test]
async fn an_account_that_cannot_be_used_is_opened_for_a_trial() {
    let desk = Desk::new("");
    let context = desk.context();
    assert_eq!(open_account(&context, "main", NOW).await.expect_err("none").kind(), ErrorKind::NotFound);
    let store = context.state().expect("a state directory").store;
    for (name, status) in [("main", AccountStatus::Closed), ("open", AccountStatus::Open)] {
        let account =
            Account { name: name.to_owned(), agent: AgentName::new("first"), status, updated_at: NOW };
        store.set_account(&account).await.expect("stored");
    }
    let states = async || {
        let lines = accounts(&context).await.expect("accounts");
        lines.into_iter().map(|line| format!("{} {}", line.name, line.state)).collect::<Vec<_>>()
    };
    assert_eq!(states().await, ["main closed", "open open"]);
    assert_eq!(open_account(&context, "main", NOW).await.expect("opened").account.state, "trial");
    assert_eq!(open_account(&context, "open", NOW).await.expect("opened").account.state, "open");
    assert_eq!(states().await, ["main trial", "open open"]);
    let unknown = open_account(&context, "mian", NOW).await.expect_err("none");
    assert_eq!(unknown.message(), "no attempt has used an account `mian`");
}

#[tokio::test]
async fn opening_an_account_queues_the_goals_again_that_wait_for_it_and_no_other() {
    let desk = Desk::new("");
    let context = desk.context();
    let store = context.state().expect("a state directory").store;
    let agent = desk.store_goal().await.agents[0].clone();
    let status = AccountStatus::Closed;
    let account = Account { name: agent.to_string(), agent: agent.clone(), status, updated_at: NOW };
    store.set_account(&account).await.expect("stored");
    let stopped = async |phase: Phase, end: &str, until| {
        let unavailable = Unavailable { end: end.to_owned(), until, guessed: false };
        let change = |state: &mut GoalState| {
            state.phase = phase;
            state.unavailable.insert(agent.clone(), unavailable);
        };
        desk.store_goal_as(change).await.id
    };
    let escalated = |reason| Phase::Escalated { reason };
    let refused = EscalationReason::Auth { agent: agent.to_string(), message: "401".into() };
    // Long after the test.
    let until = Timestamp::MAX - Duration::from_secs(3_600);
    let limited = stopped(Phase::Limited { until, guessed: false }, "rate_limited", Some(until)).await;
    let refused = stopped(escalated(refused), "auth", None).await;
    let other = stopped(escalated(EscalationReason::NoAgent), "crashed", None).await;
    let opened = open_account(&context, agent.as_str(), NOW).await.expect("opened");
    assert_eq!(opened.account.state, "trial");
    let continued: BTreeSet<String> = opened.continued.iter().cloned().collect();
    assert_eq!((continued, opened.refused), ([limited, refused].map(|id| id.to_string()).into(), vec![]));
    for goal in [limited, refused] {
        let record = store.load(goal).await.expect("a goal");
        let queued_at = (record.state.phase, record.state.queued_at);
        assert_eq!(queued_at, (Phase::Queued, Some(record.goal.created_at)));
    }
    assert_eq!(store.load(other).await.expect("a goal").state.phase.name(), "escalated");
    let again = open_account(&context, agent.as_str(), NOW).await.expect("opened");
    assert_eq!(again.continued, Vec::<String>::new());
}

#[tokio::test]
async fn nothing_spent_is_a_report_without_lines_that_names_the_time_zone() {
    let desk = Desk::new("");
    let report = cost(&desk.context(), CostBy::Day, NOW, &TimeZone::UTC).await.expect("a report");
    assert_eq!((report.by.as_str(), report.time_zone.as_str(), report.lines), ("day", "UTC", vec![]));
}
