//! A proof holds as it was signed, and in no other way.

#![expect(clippy::unwrap_used, reason = "an expectation that fails is a test that fails")]

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use towline_proof::{
    CheckFacts, Envelope, Facts, GoalFacts, NotOpened, OutputFacts, ProtectionFacts, PublicKey, SetupFacts,
    Signer, SignerFacts, SigningKey, Statement, StatementError, TrustFacts, VerdictTimes, Versions, open,
    sha256_of_json, sign,
};

static KEY: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::generate().unwrap().0);

fn public() -> PublicKey {
    KEY.public().unwrap()
}

fn check(name: &str) -> CheckFacts {
    let definition = json!({"name": name, "kind": {"kind": "command", "run": "make test"}, "timeout": 1800});
    let output = OutputFacts { stdout_sha256: "1".repeat(64), stderr_sha256: "2".repeat(64) };
    CheckFacts {
        name: name.into(),
        sha256: sha256_of_json(&definition).unwrap(),
        definition: Some(definition),
        exit_code: Some(0),
        output: Some(output),
    }
}

fn statement() -> Statement {
    let setup = vec!["npm ci".to_owned()];
    let facts = Facts {
        goal: GoalFacts { id: "01932f6e-7c00-7abc-8def-0123456789ab".into(), title: "Fix it".into() },
        base: "a".repeat(40),
        head: None,
        checks: vec![check("tests"), check("lint")],
        checkout: "clean".into(),
        setup: SetupFacts {
            sha256: SetupFacts::hash(&setup),
            commands: Some(setup),
            generated: Vec::new(),
            changes: [("node_modules/".to_owned(), None)].into(),
            warm: Vec::new(),
        },
        protected: ProtectionFacts::new(&["tests/**".into()], &[]),
        restored: vec!["tests/a.rs".into()],
        trust: TrustFacts { level: 1, sandbox: None, in_place: false },
        verdict: VerdictTimes { began_at: None, reached_at: "2026-11-19T04:00:00Z".into() },
        versions: Versions { towline: "0.1.0".into(), git: "2.39.5".into() },
        signer: SignerFacts::of(&public()),
    };
    Statement::passed(&"b".repeat(40), &"c".repeat(40), facts)
}

fn signed(statement: &Statement) -> Envelope {
    sign(statement.payload().unwrap(), &KEY).unwrap()
}

fn signer_of(envelope: &Envelope, trusted: &[PublicKey]) -> Result<Signer, NotOpened> {
    open(envelope.json().unwrap().as_bytes(), trusted).map(|opened| opened.signer)
}

#[test]
fn a_proof_is_opened_as_it_was_signed() {
    let statement = statement();
    let envelope = signed(&statement);
    let opened = open(envelope.json().unwrap().as_bytes(), &[public()]).unwrap();
    assert_eq!((&opened.statement, &opened.signer), (&statement, &Signer::Trusted(public().id())));
    assert_eq!(opened.statement.faults(), []);
    assert_eq!(statement.candidate(), Some("b".repeat(40).as_str()));
    let value: Value = serde_json::from_slice(&envelope.payload).unwrap();
    assert_eq!(value["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(value["predicate"]["result"], "PASSED");
    assert_eq!(value["predicate"]["passedTests"], json!(["tests", "lint"]));
    assert_eq!(value["subject"][0], json!({"name": "commit", "digest": {"gitCommit": "b".repeat(40)}}));
}

#[test]
fn a_key_that_is_not_trusted_is_unknown_whatever_the_proof_says_of_it() {
    let envelope = signed(&statement());
    let other = SigningKey::generate().unwrap().0.public().unwrap();
    assert_eq!(signer_of(&envelope, &[]).unwrap(), Signer::Unknown(public().id()));
    assert_eq!(signer_of(&envelope, &[other]).unwrap(), Signer::Unknown(public().id()));
    // A signature by one key under the name of another is nobody's.
    let mut renamed = envelope.clone();
    renamed.signatures[0].key = other.id();
    assert_eq!(signer_of(&renamed, &[other]).unwrap(), Signer::Nobody(other.id()));
}

#[test]
fn a_signature_of_another_type_of_payload_does_not_count() {
    let mut envelope = signed(&statement());
    "text/plain".clone_into(&mut envelope.payload_type);
    assert_eq!(signer_of(&envelope, &[public()]), Err(NotOpened::OtherPayload("text/plain".into())));
}

#[test]
fn what_does_not_fit_together_is_named_although_it_is_signed() {
    type Change = fn(&mut Statement);
    let table: [(Change, StatementError); 8] = [
        (
            |it| it.predicate.towline.checks[1].definition = Some(json!({"name": "lint"})),
            StatementError::CheckChanged("lint".into()),
        ),
        (|it| it.predicate.towline.setup.commands = Some(vec!["true".into()]), StatementError::SetupChanged),
        (|it| it.predicate.towline.protected.paths.clear(), StatementError::ProtectionChanged),
        (|it| drop(it.predicate.configuration.pop()), StatementError::ConfigurationChanged),
        (|it| drop(it.predicate.passed_tests.pop()), StatementError::NotPassed),
        (|it| it.predicate.failed_tests.push("tests".into()), StatementError::NotPassed),
        (|it| drop(it.subject.pop()), StatementError::NoSubject("tree")),
        (|it| it.predicate.towline.base = "--upload-pack=x".into(), StatementError::NoBase),
    ];
    for (change, expected) in table {
        let mut changed = statement();
        change(&mut changed);
        let opened = open(signed(&changed).json().unwrap().as_bytes(), &[public()]).unwrap();
        assert_eq!(opened.statement.faults(), [expected]);
    }
}

#[test]
fn a_check_may_be_there_by_its_hash_alone() {
    let mut hidden = statement();
    hidden.predicate.towline.checks[1].definition = None;
    assert_eq!(hidden.faults(), []);
}

#[test]
fn every_byte_of_the_envelope_counts() {
    let json = signed(&statement()).json().unwrap();
    for at in 0..json.len() {
        let mut bytes = json.clone().into_bytes();
        bytes[at] ^= 1;
        let opened = open(&bytes, &[public()]);
        let accepted = opened.is_ok_and(|opened| matches!(opened.signer, Signer::Trusted(_)));
        assert!(!accepted, "byte {at}: {}", &json[at.saturating_sub(20)..(at + 20).min(json.len())]);
    }
}

proptest! {
    #[test]
    fn a_changed_byte_of_payload_or_signature_is_noticed(at in any::<prop::sample::Index>(), flip in 1_u8.., of_signature: bool) {
        let mut envelope = signed(&statement());
        let bytes = if of_signature { &mut envelope.signatures[0].bytes } else { &mut envelope.payload };
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let accepted = signer_of(&envelope, &[public()]).is_ok_and(|signer| !matches!(signer, Signer::Nobody(_)));
        prop_assert!(!accepted);
    }

    #[test]
    fn bytes_that_are_no_proof_are_an_error_and_no_panic(bytes: Vec<u8>) {
        prop_assert!(open(&bytes, &[public()]).is_err());
    }
}
