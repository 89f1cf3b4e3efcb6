//! What is hidden, what is not, and what holds of every text.

use proptest::prelude::*;
use towline_mask::{Mask, Secrets, is_masked_form_of};

fn mask(values: &[(&str, &str)]) -> Mask {
    let mut secrets = Secrets::default();
    values.iter().for_each(|(name, value)| secrets.add(name, value));
    Mask::new(&secrets)
}

#[test]
fn known_values_are_hidden_in_all_their_forms() {
    let mask = mask(&[("API_KEY", "pa\"ss w\\ord9"), ("OTHER_TOKEN", "abc123def456")]);
    let cases = [
        ("as pa\"ss w\\ord9 is", "as [masked API_KEY] is"),
        (r#"{"key":"pa\"ss w\\ord9"}"#, r#"{"key":"[masked API_KEY]"}"#),
        (r#""{\"key\":\"pa\\\"ss w\\\\ord9\"}""#, r#""{\"key\":\"[masked API_KEY]\"}""#),
        ("?key=pa%22ss%20w%5Cord9&x", "?key=[masked API_KEY]&x"),
        ("Basic dXNlcjphYmMxMjNkZWY0NTY=", "Basic dXNlcjp[masked OTHER_TOKEN]Y="),
        ("abc123def456abc123def456", "[masked OTHER_TOKEN][masked OTHER_TOKEN]"),
        ("an abc123def45 is another", "an abc123def45 is another"),
    ];
    for (text, wanted) in cases {
        assert_eq!(mask.text(text), wanted, "{text}");
    }
}

#[test]
fn what_was_cut_at_an_edge_is_hidden_as_far_as_it_goes() {
    let mask = mask(&[("API_KEY", "planted-in-environment-4f1c"), ("MY_TOKEN", "ä\"quoted9value")]);
    let cases = [
        ("nvironment-4f1c was it", "[masked API_KEY] was it"),
        ("… -4f1c was it", "… -4f1c was it"),
        ("…\nironment-4f1c", "…\n[masked API_KEY]"),
        ("it was planted-in-envi", "it was [masked API_KEY]"),
        ("it was planted-in-e …", "it was [masked API_KEY] …"),
        ("it was planted-in-e… (12 more characters)", "it was [masked API_KEY]… (12 more characters)"),
        (
            "it was planted-in-e\n… and 7 more characters\n",
            "it was [masked API_KEY]\n… and 7 more characters\n",
        ),
        ("oted9value", "[masked MY_TOKEN]"),
        (r#"it was ä\"quote"#, "it was [masked MY_TOKEN]"),
        ("it was planted", "it was planted"),
        ("planted-in-envi is no edge ", "planted-in-envi is no edge "),
    ];
    for (text, wanted) in cases {
        assert_eq!(mask.text(text), wanted, "{text}");
    }
}

#[test]
fn values_that_overlap_are_hidden_as_one() {
    let mask = mask(&[("ONE", "aaaabbbb1"), ("TWO", "bbbb1cccc")]);
    assert_eq!(mask.text("xaaaabbbb1ccccx"), "x[masked ONE]x");
}

#[test]
fn shapes_of_tokens_are_hidden_whoever_knows_them() {
    let mask = Mask::default();
    let cases = [
        "sk-ant-api03-abcdefghij1234567890",
        "sk-proj-abcdefghij1234567890",
        "ghp_abcdefghijklmnop1234",
        "gho_abcdefghijklmnop1234",
        "github_pat_11ABCDEFG0abcdefghijkl",
        "glpat-abcdefghij1234567890",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA1234567890abcdefghijklmnopqrstu",
        "xoxb-123456789012-abcdefghijkl",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlMTIz",
    ];
    for token in cases {
        for (text, wanted) in [
            (format!("the key is {token}, really"), "the key is [masked token], really".to_owned()),
            (format!("KEY={token}"), "KEY=[masked token]".to_owned()),
            (format!("{{\"k\":\"\\n{token}\"}}"), "{\"k\":\"\\n[masked token]\"}".to_owned()),
        ] {
            assert_eq!(mask.text(&text), wanted);
        }
    }
    let others = [
        ("Authorization: Bearer abcdefghijkl.mnop/qr+st==\r\n", "Authorization: Bearer [masked token]\r\n"),
        ("postgres://me:s3cret:x@db/x", "postgres://me:[masked password]@db/x"),
        (
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n+/=\n-----END RSA PRIVATE KEY-----\nb",
            "a\n[masked private key]\nb",
        ),
        ("\"-----BEGIN PRIVATE KEY-----\\nMIIE\\n\"", "\"[masked private key]\""),
        ("-----BEGIN CERTIFICATE-----\nMIIE", "-----BEGIN CERTIFICATE-----\nMIIE"),
    ];
    for (text, wanted) in others {
        assert_eq!(mask.text(text), wanted);
    }
}

#[test]
fn text_that_only_resembles_a_secret_stays() {
    let mask = Mask::default();
    let harmless = [
        "task-list-of-things-to-do-in-the-next-1000-days",
        "sk-learn is a library",
        "risk-averse-people-are-many-2024",
        "https://example.org:8080/a@b",
        "https://example.org/a:b@c",
        "eyJ is how it begins",
        "AKIA is short",
        "Bearer of bad news",
        "user@example.org: hello",
        "01932f6e-7c00-7abc-8def-0123456789ab",
        "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "[masked API_KEY]",
        "[masked token]",
    ];
    for text in harmless {
        assert_eq!(mask.text(text), text);
    }
}

#[test]
fn a_text_of_nothing_but_beginnings_takes_no_time() {
    let mask = Mask::default();
    for beginning in ["sk-", "eyJ", "://", "://a:", "Bearer ", "-----BEGIN PRIVATE KEY-----", "\\nsk-"] {
        let text = beginning.repeat(200_000 / beginning.len());
        let begun = std::time::Instant::now();
        let _ = mask.text(&text);
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{beginning}");
    }
}

/// Texts that are likely to hold secrets, whole and cut.
fn texts() -> impl Strategy<Value = (Vec<String>, String)> {
    let values = prop::collection::vec("[a-c\"\\\\\u{e9} \\[\\]]{8,12}", 1..4);
    values.prop_flat_map(|values| {
        let piece = prop_oneof![
            prop::sample::select(values.clone()),
            ".{0,8}",
            prop::sample::select(vec![
                "sk-",
                "[masked ",
                "]",
                "Bearer ",
                "://a:b@",
                "eyJabcdefghij.abcdefghijkl",
                "-----BEGIN PRIVATE KEY-----",
                "\u{1F600}",
            ])
            .prop_map(str::to_owned),
        ];
        let text = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
        (Just(values), text)
    })
}

proptest! {
    #[test]
    fn no_known_value_is_left_and_nothing_changes_the_second_time((values, text) in texts()) {
        let named: Vec<(&str, &str)> = values.iter().map(|value| ("NAME", value.as_str())).collect();
        let mask = mask(&named);
        let masked = mask.text(&text).into_owned();
        for value in values.iter().map(|value| value.trim()) {
            let is_hidden = value.chars().count() >= 8
                && value.chars().any(char::is_alphanumeric)
                && !value.contains("[masked");
            prop_assert!(!is_hidden || !masked.contains(value), "{value:?} in {masked:?}");
        }
        prop_assert_eq!(mask.text(&masked), masked.as_str());
        prop_assert!(is_masked_form_of(&masked, &text), "{:?} of {:?}", masked, text);
    }
}
