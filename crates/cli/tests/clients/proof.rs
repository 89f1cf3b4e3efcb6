//! A proof is in the formats that other projects define: their own packages read and verify it.

use serde_json::json;
use towline_testkit::agents::clients_folder;
use towline_testkit::hostile;
use towline_testkit::scratch::clean_command;

use crate::support::{Desk, Ran};

#[test]
fn the_packages_of_in_toto_and_of_securesystemslib_accept_a_proof() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    let ran = desk.towline(["run", "fix it", "--check", "test -e fix.txt", "--json"]).json();
    let goal = ran["id"].as_str().expect("an id");
    let [proof, keys] = ["proof.json", "keys.pem"].map(|name| desk.home.path().join(name));
    for (file, made) in [(&proof, desk.towline(["proof", goal])), (&keys, desk.towline(["keys"]))] {
        assert_eq!(made.code, Some(0), "{made:?}");
        std::fs::write(file, made.stdout).expect("written");
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/proof.py");
    let mut python = clean_command(clients_folder().join("python3"));
    python.env_clear().env("HOME", desk.home.path()).env("PATH", "/usr/bin:/bin");
    python.env("PYTHONDONTWRITEBYTECODE", "1").arg(script).args([&proof, &keys]);
    let read = Ran::from(python.output().expect("python3 starts: run `cargo xtask setup`"));
    assert_eq!(read.code, Some(0), "{}", read.stderr);
    let read = read.json();
    assert_eq!((&read["result"], &read["failed"]), (&json!("PASSED"), &json!([])));
    assert_eq!((&read["commit"], &read["goal"]), (&ran["candidate"], &json!(goal)));
    let names = read["passed"].as_array().expect("names");
    let checks = names.iter().map(|name| format!("check/{}", name.as_str().expect("text")));
    let configuration: Vec<String> = checks.chain(["setup", "protected"].map(str::to_owned)).collect();
    assert_eq!((names.len(), &read["configuration"]), (1, &json!(configuration)));
}
