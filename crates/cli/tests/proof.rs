//! `towline proof`, `verify --proof` and `keys`: a verdict can be shown to others, and nothing else passes for one.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{Desk, Ran, finish};
use towline_proof::{Envelope, sha256};
use towline_testkit::hostile;
use towline_testkit::scratch::clean_command;

const FIXED: &str = "grep -q fixed fix.txt && echo it is fixed";

fn desk() -> Desk {
    Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"))
}

/// A goal with these checks that is done.
fn done(desk: &Desk, checks: &[&str]) -> String {
    let checks = checks.iter().flat_map(|check| ["--check", check]);
    let ran = desk.towline(["run", "fix it", "--json"].into_iter().chain(checks));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()["id"].as_str().expect("an id").to_owned()
}

/// The proof of a goal, in a file of its home.
fn proof_of(desk: &Desk, goal: &str) -> PathBuf {
    let file = desk.home.path().join("proof.json");
    let made = desk.towline(["proof".as_ref(), goal.as_ref(), "-o".as_ref(), file.as_os_str()]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.stdout.contains("towline verify --proof"), "{}", made.stdout);
    file
}

/// The same file with a changed payload.
fn with_payload(file: &Path, change: impl FnOnce(String) -> String) -> PathBuf {
    let envelope = Envelope::read(&std::fs::read(file).expect("the proof")).expect("an envelope");
    let payload = String::from_utf8(envelope.payload.clone()).expect("text");
    let changed = change(payload.clone());
    assert_ne!(changed, payload);
    let changed = Envelope { payload: changed.into_bytes(), ..envelope };
    let beside = file.with_extension("changed");
    std::fs::write(&beside, changed.json().expect("JSON")).expect("written");
    beside
}

fn statement(file: &Path) -> Value {
    let envelope = Envelope::read(&std::fs::read(file).expect("the proof")).expect("an envelope");
    serde_json::from_slice(&envelope.payload).expect("a statement")
}

fn verify(desk: &Desk, file: &Path, more: &[&str]) -> Ran {
    verify_in(desk, desk.project.path(), file, more)
}

fn verify_in(desk: &Desk, directory: &Path, file: &Path, more: &[&str]) -> Ran {
    let mut command = desk.command(["verify", "--proof"]);
    command.arg(file).args(more).current_dir(directory);
    finish(command.spawn().expect("towline starts"))
}

/// What was found: parts that hold, and the texts of those that do not.
fn found(ran: &Ran) -> (Vec<String>, Vec<String>) {
    let report = ran.json();
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for finding in report["findings"].as_array().expect("findings") {
        let [part, text] = ["part", "text"].map(|field| finding[field].as_str().expect("text").to_owned());
        match finding["holds"].as_bool().expect("a boolean") {
            true => good.push(part),
            false => bad.push(format!("{part}: {text}")),
        }
    }
    assert_eq!(report["holds"], bad.is_empty());
    assert_eq!(ran.code, Some(if bad.is_empty() { 0 } else { 3 }), "{ran:?}");
    (good, bad)
}

fn git(directory: &Path, args: &[&str]) -> String {
    let output = clean_command("git").current_dir(directory).args(args).output().expect("git starts");
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// Another machine: a home of its own, and a clone of the project.
fn elsewhere(desk: &Desk) -> (Desk, PathBuf) {
    let other = Desk::new();
    let clone = other.home.path().join("clone");
    let clone_to = clone.display().to_string();
    git(&other.home.path(), &["clone", "-q", &desk.project.path().display().to_string(), &clone_to]);
    (other, clone)
}

fn public_keys(desk: &Desk) -> PathBuf {
    let file = desk.home.path().join("keys.pem");
    let keys = desk.towline(["keys"]);
    assert_eq!(keys.code, Some(0), "{keys:?}");
    std::fs::write(&file, keys.stdout).expect("written");
    file
}

/// Gives each object of a repository a file of its own.
fn unpack(root: &Path) {
    let script = "mkdir packs && mv .git/objects/pack/*.pack packs && rm -f .git/objects/pack/* && \
                  for pack in packs/*; do git unpack-objects -q < \"$pack\"; done; rm -r packs";
    let status = clean_command("sh").current_dir(root).args(["-ec", script]).status().expect("sh starts");
    assert!(status.success());
}

#[test]
fn a_proof_has_the_facts_of_the_verdict_and_holds_in_the_repository() {
    let desk = desk();
    let goal = done(&desk, &[FIXED, "test -e fix.txt"]);
    let shown = desk.show(&goal);
    let file = proof_of(&desk, &goal);
    let statement = statement(&file);
    let facts = &statement["predicate"]["towline"];
    assert_eq!(statement["subject"][0]["digest"]["gitCommit"], shown["candidate"]);
    assert_eq!((&facts["goal"]["id"], &facts["base"]), (&json!(goal), &shown["base"]));
    assert_eq!(facts["trust"]["level"], shown["trust"]["level"]);
    assert_eq!(facts["checkout"], shown["trust"]["confirmed"]);
    let check = &facts["checks"][0];
    assert_eq!(check["output"]["stdout_sha256"], sha256(b"it is fixed\n").as_str(), "{facts}");
    assert_eq!((&check["exit_code"], &check["definition"]["kind"]["run"]), (&json!(0), &json!(FIXED)));
    assert!(facts["verdict"]["began_at"].as_str() <= facts["verdict"]["reached_at"].as_str(), "{facts}");

    let held = verify(&desk, &file, &[]);
    assert_eq!(held.code, Some(0), "{held:?}");
    assert!(held.stdout.ends_with("✓ the proof holds\n"), "{}", held.stdout);
    let held = verify(&desk, &file, &["--json"]);
    assert_eq!(found(&held).0, ["signature", "statement", "candidate", "base"]);
    assert_eq!(held.json()["now"], Value::Null, "nothing is executed");
    let printed = desk.towline(["proof", &goal]).stdout;
    assert_eq!(printed, std::fs::read_to_string(&file).expect("the proof"), "it is the same each time");
}

#[test]
fn another_machine_accepts_a_proof_by_its_public_key_and_can_run_the_checks() {
    let desk = desk();
    let file = proof_of(&desk, &done(&desk, &[FIXED]));
    let keys = public_keys(&desk).display().to_string();
    let (other, clone) = elsewhere(&desk);
    let unknown = verify_in(&other, &clone, &file, &["--run", "--json"]);
    let (_, bad) = found(&unknown);
    assert!(bad[0].starts_with("signature: a valid signature by an unknown key"), "{bad:?}");
    assert_eq!(bad[1..], ["checks: not run, because the proof does not hold"]);
    assert!(!other.home.towline().join("proofs").exists(), "nothing ran");

    let known = verify_in(&other, &clone, &file, &["--key", &keys, "--json"]);
    assert_eq!(found(&known).0, ["signature", "statement", "candidate", "base"]);
    let made = ["keys", "towline.db"].map(|name| other.home.towline().join(name).exists());
    assert_eq!(made, [false, false], "a look makes neither keys nor a store");
    let again = verify_in(&other, &clone, &file, &["--key", &keys, "--run", "--json"]);
    assert_eq!(found(&again).0, ["signature", "statement", "candidate", "base", "checks"]);
    assert_eq!(again.json()["now"]["met"], true, "{again:?}");
    assert_eq!(git(&clone, &["status", "--porcelain"]), "");
    let left = std::fs::read_dir(other.home.towline().join("proofs")).expect("the directory");
    let left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(left, ["lock"], "no state of the run is left");
    let list = desk_command(&other, &clone, &["ls", "--all", "--json"]);
    assert_eq!(list.json(), json!([]), "its goal is in no list");
}

fn desk_command(desk: &Desk, directory: &Path, args: &[&str]) -> Ran {
    let mut command = desk.command(args);
    command.current_dir(directory);
    finish(command.spawn().expect("towline starts"))
}

#[test]
fn checks_that_fail_when_they_run_again_are_named() {
    let desk = desk();
    let switch = desk.home.path().join("switch");
    let check = format!("! test -e {}", switch.display());
    let file = proof_of(&desk, &done(&desk, &[FIXED, &check]));
    assert_eq!(verify(&desk, &file, &["--run"]).code, Some(0));
    std::fs::write(switch, "").expect("written");
    let (_, bad) = found(&verify(&desk, &file, &["--run", "--json"]));
    assert_eq!(bad.len(), 1, "{bad:?}");
    assert!(bad[0].starts_with("checks: these fail now: `"), "{bad:?}");
    assert_eq!(verify(&desk, &file, &[]).code, Some(0), "without --run nothing is executed");
}

#[test]
fn a_check_with_a_secret_is_in_a_proof_by_its_hash_alone() {
    let mut desk = desk();
    desk.set("DEPLOY_TOKEN", "hunter2-hunter2-hunter2");
    let checks = "[[checks]]\nname = \"open\"\nrun = \"test -e fix.txt\"\n\
                  [[checks]]\nname = \"closed\"\nrun = \"test -n hunter2-hunter2-hunter2\"\n";
    desk.project.write("towline.toml", checks);
    desk.project.commit("checks");
    let goal = done(&desk, &[]);
    let made = desk.towline(["proof", &goal]);
    assert!(made.stderr.contains("only the hash of check closed"), "{made:?}");
    let file = proof_of(&desk, &goal);
    let facts = &statement(&file)["predicate"]["towline"];
    assert!(!facts.to_string().contains("hunter2"), "{facts}");
    assert_eq!(
        (&facts["checks"][1]["definition"], &facts["checks"][1]["exit_code"]),
        (&Value::Null, &json!(0))
    );
    let run = verify(&desk, &file, &["--run", "--json"]);
    assert_eq!(found(&run).1, Vec::<String>::new());
    let report = run.json();
    let text = report["findings"][4]["text"].as_str().expect("text");
    assert!(text.ends_with("not run, because the proof does not have them: `closed`"), "{text}");
}

#[test]
fn in_a_sandbox_neither_agents_nor_the_checks_of_a_proof_see_the_keys() {
    // The workspace is in `workspaces/` of the state directory.
    let find = "ls \"$PWD/../../keys\" > seen.txt 2>/dev/null; echo fixed > fix.txt";
    let desk = Desk::with_script(|dir| hostile::doing(dir, find)).in_sandbox();
    assert_eq!(desk.towline(["keys", "rotate"]).code, Some(0));
    let keys = desk.home.towline().join("keys/keys.json");
    assert!(keys.exists());
    let goal = done(&desk, &[FIXED, "test ! -s seen.txt", &format!("test ! -e '{}'", keys.display())]);
    let file = proof_of(&desk, &goal);
    let trust = &statement(&file)["predicate"]["towline"]["trust"];
    assert_eq!((&trust["level"], &trust["sandbox"]), (&json!(2), &json!("bubblewrap")));
    let run = verify(&desk, &file, &["--run", "--json"]);
    assert_eq!(found(&run).1, Vec::<String>::new(), "{run:?}");
}

#[test]
fn the_checks_of_a_proof_cannot_steer_or_sign() {
    let desk = desk();
    let (switch, refusal) = (desk.home.path().join("switch"), desk.home.path().join("refusal"));
    let towline =
        format!("TOWLINE_HOME='{}' '{}'", desk.home.towline().display(), env!("CARGO_BIN_EXE_towline"));
    let check = format!(
        "test -e {switch} || exit 0; {towline} keys rotate 2> {refusal}; test $? = 2 && {towline} keys",
        switch = switch.display(),
        refusal = refusal.display()
    );
    let file = proof_of(&desk, &done(&desk, &[&check]));
    let keys = desk.towline(["keys"]).stdout;
    std::fs::write(switch, "").expect("written");
    let (_, bad) = found(&verify(&desk, &file, &["--run", "--json"]));
    assert_eq!(bad, Vec::<String>::new());
    let refusal = std::fs::read_to_string(refusal).expect("an error");
    assert!(refusal.contains("was started by an agent, check or setup command"), "{refusal}");
    assert_eq!(desk.towline(["keys"]).stdout, keys);
}

#[test]
fn a_changed_byte_is_found_and_named() {
    let desk = desk();
    let goal = done(&desk, &[FIXED]);
    let file = proof_of(&desk, &goal);
    let candidate = desk.show(&goal)["candidate"].as_str().expect("a commit").to_owned();
    let bad_of = |file: &Path| found(&verify(&desk, file, &["--json"])).1;

    // The envelope.
    let bytes = std::fs::read(&file).expect("the proof");
    for at in (0..bytes.len() - 1).step_by(bytes.len() / 12) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let beside = file.with_extension("flipped");
        std::fs::write(&beside, changed).expect("written");
        assert_eq!(verify(&desk, &beside, &[]).code, Some(3), "byte {at}");
    }
    // A check.
    let weaker =
        with_payload(&file, |text| text.replacen("\"run\":\"grep -q fixed", "\"run\":\"grep -q fixes", 1));
    let bad = bad_of(&weaker);
    assert!(bad[0].starts_with("signature: it does not fit"), "{bad:?}");
    assert!(
        bad[1].starts_with("statement: check `") && bad[1].ends_with("is not the one that its hash names"),
        "{bad:?}"
    );
    // The candidate, as the proof names it.
    let other = with_payload(&file, |text| text.replacen(&candidate, &"0".repeat(40), 1));
    let bad = bad_of(&other);
    assert!(
        bad[1].starts_with("candidate: commit 0000") && bad[1].contains("is not in this repository"),
        "{bad:?}"
    );
    // The candidate, as the repository has it: one byte of a file, in an object that still has the id.
    let root = desk.project.path();
    let blob = git(root, &["rev-parse", &format!("{candidate}:fix.txt")]);
    std::fs::write(desk.home.path().join("lie"), "fixes\n").expect("written");
    let lie = git(root, &["hash-object", "-w", &desk.home.path().join("lie").display().to_string()]);
    unpack(root);
    let loose = |id: &str| root.join(".git/objects").join(&id[..2]).join(&id[2..]);
    std::fs::remove_file(loose(&blob)).expect("an object of its own");
    std::fs::copy(loose(&lie), loose(&blob)).expect("copied");
    let bad = bad_of(&file);
    assert_eq!(
        bad,
        [format!(
            "candidate: commit {} is damaged here: object {blob} is not what its id names",
            &candidate[..12]
        )]
    );
}

#[test]
fn only_a_goal_that_is_done_has_a_proof() {
    let desk = desk();
    let unproven = desk.towline(["run", "trust me", "--json"]);
    let failed = desk.towline(["run", "fail", "--check", "false", "--budget", "attempts=1", "--json"]);
    let queued = desk.towline(["add", "later on", "--check", "false", "--json"]);
    for (ran, why, hint) in [
        (unproven, "it has no checks, so nothing was proven", "towline retry"),
        (failed, "it is failed, and only a goal that is done has one", "towline show"),
        (queued, "it is queued; only a goal that is done has one", "towline"),
    ] {
        let goal = ran.json()["id"].as_str().expect("an id").to_owned();
        let refused = desk.towline(["proof", &goal]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
        assert!(refused.stderr.contains(why) && refused.stderr.contains(hint), "{}", refused.stderr);
    }
    assert_eq!(desk.towline(["proof", "ffffffff"]).code, Some(5));
    assert!(!desk.home.towline().join("keys").exists(), "nothing was signed");
}

#[test]
fn files_that_are_missing_or_no_proofs_have_exit_codes_of_their_own() {
    let desk = desk();
    let file = proof_of(&desk, &done(&desk, &[FIXED]));
    assert_eq!(verify(&desk, Path::new("missing.json"), &[]).code, Some(5));
    assert_eq!(verify(&desk, &file, &["--key", "missing.pem"]).code, Some(5));
    let no_key = verify(&desk, &file, &["--key", &file.display().to_string()]);
    assert_eq!(no_key.code, Some(2), "{no_key:?}");
    assert_eq!(verify_in(&desk, &desk.home.path(), &file, &[]).code, Some(2), "in no repository");
    assert_eq!(desk.towline(["verify", "--run", "@"]).code, Some(2), "--run is about a proof");
    let text = file.with_extension("txt");
    std::fs::write(&text, "no proof").expect("written");
    let (_, bad) = found(&verify(&desk, &text, &["--json"]));
    assert!(bad[0].starts_with("envelope: it is no DSSE envelope"), "{bad:?}");
}

#[test]
fn a_new_key_signs_and_the_old_one_still_verifies() {
    let desk = desk();
    assert_eq!(desk.towline(["keys", "--json"]).json(), json!([]));
    let goal = done(&desk, &[FIXED]);
    let file = proof_of(&desk, &goal);
    let first = desk.towline(["keys", "--json"]).json();
    let rotated = desk.towline(["keys", "rotate", "--json"]).json();
    let both = desk.towline(["keys", "--json"]).json();
    assert_eq!(both[0], rotated);
    assert_eq!((&both[1]["id"], &both[1]["active"]), (&first[0]["id"], &json!(false)));
    assert_eq!((&first[0]["active"], &rotated["active"]), (&json!(true), &json!(true)));
    assert_eq!(verify(&desk, &file, &[]).code, Some(0), "the old proof");
    let newer = proof_of(&desk, &goal);
    assert_eq!(statement(&newer)["predicate"]["towline"]["signer"]["keyid"], rotated["id"]);
    assert_eq!(verify(&desk, &newer, &[]).code, Some(0));

    let folder = desk.home.towline().join("keys");
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in std::fs::read_dir(&folder).expect("the directory") {
        assert_eq!(mode(&entry.expect("an entry").path()), 0o600);
    }
    let printed = desk.towline(["keys"]).stdout;
    assert!(printed.contains("BEGIN PUBLIC KEY") && !printed.contains("PRIVATE"), "{printed}");
}
