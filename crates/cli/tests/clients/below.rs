//! An agent with curl and the operator's token, which it can read.

use towline_testkit::scratch::wait_for_some;

use crate::support::LIMIT;
use crate::workshop::Workshop;

/// Writes down the status of a request for each route that changes something, and of one that reads.
const WORK: &str = r#"
until test -e "$HOME/order"; do sleep 0.02; done
. "$HOME/order"
ask() { curl --silent --output "$HOME/reply" --write-out "%{http_code} $1\n" --header "Authorization: Bearer $(cat "$state/operator-token")" \
    $2 "http://$address/api/v1$1" >> "$HOME/statuses.new"; cat "$HOME/reply" >> "$HOME/replies"; }
ask "/goals/$other"
for what in pause resume cancel retry merge; do ask "/goals/$other/$what" "--request POST"; done
for what in answer "tell"; do ask "/goals/$other/$what" "--json {\"text\":\"x\"}"; done
ask /goals "--json {\"prompt\":\"x\",\"repository\":\"$PWD\"}"
ask /accounts/mine/open "--request POST"
mv "$HOME/statuses.new" "$HOME/statuses"
"#;

#[test]
fn an_agent_with_the_operators_token_reads_and_changes_nothing() {
    let workshop = Workshop::open(WORK);
    let first = workshop.add(&[]);
    let other = workshop.add(&["--after", &first]);
    let before = workshop.desk.events(&other);
    let home = workshop.desk.home.path();
    let (state, address) = (workshop.desk.home.towline(), &workshop.address);
    let order = format!("state='{}'\naddress={address}\nother={other}\n", state.display());
    std::fs::write(home.join("order.new"), order).expect("written");
    std::fs::rename(home.join("order.new"), home.join("order")).expect("renamed");
    let file = home.join("statuses");
    let statuses = wait_for_some(LIMIT, "the agent's requests", || std::fs::read_to_string(&file).ok());
    let mut lines = statuses.lines();
    assert_eq!(lines.next(), Some(format!("200 /goals/{other}").as_str()), "{statuses}");
    assert!(lines.clone().count() == 9 && lines.all(|line| line.starts_with("403 ")), "{statuses}");
    assert_eq!(workshop.desk.events(&other), before);
    assert_eq!(workshop.get("/goals")["goals"].as_array().map(Vec::len), Some(2));
    let replies = std::fs::read_to_string(home.join("replies")).expect("replies");
    let refusals = replies.matches("an agent, check or setup command cannot steer or follow goals").count();
    assert_eq!(refusals, 9, "{replies}");
    for goal in [&other, &first] {
        assert_eq!(workshop.desk.towline(["cancel", goal]).code, Some(0));
    }
    workshop.close();
}
