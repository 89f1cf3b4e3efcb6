//! The secrets in a file that was made to hold some, such as `.env`, and in files of settings.
//!
//! A reader for all formats: it looks for names with a value (`KEY=value`, `"key": "value"`, `key: value`), and takes no
//! notice of how they are nested. What it takes for a value is only ever hidden, so a mistake costs little.

use crate::secrets::{Secrets, is_secret_name, is_secret_variable};

/// So many values of one file are hidden at most.
const MOST: usize = 200;
/// How many signs between a name and a value are examined, and how many bytes on both sides: a file of nothing else
/// takes no time.
const MOST_SIGNS: usize = 5_000;
const LONGEST_NAME: usize = 128;
const LONGEST_VALUE: usize = 4 * 1024;
/// Lines of a key or certificate that are shorter are not distinguished from other text.
const SHORTEST_LINE: usize = 24;

/// How much of a file is secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// It holds secrets, by its name: every value that is no plain text is one.
    OfSecrets,
    /// It may hold secrets: the values of names that look secret.
    Other,
}

impl FileKind {
    /// By the name of a file.
    pub fn of(name: &str) -> Self {
        const NAMES: [&str; 8] =
            [".env", ".envrc", ".netrc", ".npmrc", ".pgpass", ".pypirc", "id_ed25519", "id_rsa"];
        const ENDINGS: [&str; 5] = [".env", ".key", ".pem", ".tfvars", ".vault"];
        let name = name.to_ascii_lowercase();
        let is_known = NAMES.contains(&name.as_str())
            || name.starts_with(".env.")
            || ENDINGS.iter().any(|ending| name.ends_with(ending));
        // The value is an example of one that is not a plain word.
        if is_known || is_secret_name(&name, "A1") { Self::OfSecrets } else { Self::Other }
    }
}

impl Secrets {
    /// Adds the secrets in the text of a file.
    pub fn file(&mut self, kind: FileKind, name: &str, text: &str) {
        let mut found = Self::default();
        for (key, value) in pairs(text) {
            let key = words_of(key);
            let is_other = kind == FileKind::OfSecrets && !is_plain(value);
            if is_secret_variable(&key, value) || is_other {
                // A key with several lines has their breaks written out in JSON.
                let lines = value.lines().flat_map(|line| line.split("\\n"));
                lines.filter(|line| !line.starts_with("-----")).for_each(|line| found.add(&key, line));
                found.variable(&key, value);
            }
        }
        key_lines(text).for_each(|line| found.add(name, line));
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        if let (FileKind::OfSecrets, Some(only), None) = (kind, lines.next(), lines.next())
            && !only.contains(char::is_whitespace)
        {
            found.add(name, only);
        }
        self.extend(&found.first(MOST));
    }
}

/// The names with a value in a text of any format.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let signs = text.char_indices().filter(|(_, c)| matches!(c, '=' | ':')).take(MOST_SIGNS);
    let assigned = signs.filter_map(|(at, _)| {
        let from = text.floor_char_boundary(at.saturating_sub(LONGEST_NAME));
        let to = text.floor_char_boundary(at.saturating_add(LONGEST_VALUE));
        Some((key_before(text.get(from..at)?)?, value_after(text.get(at + 1..to)?)?))
    });
    assigned.chain(passwords(text))
}

/// The name that ends a text: in quotes, or the last word of its line.
fn key_before(text: &str) -> Option<&str> {
    let line = text.rsplit('\n').next()?.trim_end();
    let quote = line.chars().next_back().filter(|c| matches!(c, '"' | '\'' | '`'));
    let key = match quote {
        Some(quote) => line.strip_suffix(quote)?.rsplit(quote).next()?,
        None => line.rsplit([' ', '\t', '{', ',', ';', '"', '\'']).next()?,
    };
    // What follows another sign is a part of that one's value.
    (!key.is_empty() && !key.contains('=')).then_some(key)
}

/// The value that begins a text: in quotes, maybe over several lines, or the rest of its line without a comment.
fn value_after(text: &str) -> Option<&str> {
    let text = text.trim_start_matches([' ', '\t', '>', '=']);
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    let value = match quote {
        Some(quote) => quoted(text.get(1..)?, quote),
        None => {
            let line = text.lines().next()?;
            line.split(" #").next()?.trim().trim_end_matches([',', ';', '}', ']'])
        }
    };
    (!value.is_empty()).then_some(value)
}

/// The text up to a closing quote, or as far as it goes.
fn quoted(text: &str, quote: char) -> &str {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return &text[..at],
            _ => {}
        }
    }
    text
}

/// The passwords in a `.netrc`.
fn passwords(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let words = text.split_whitespace();
    words.clone().zip(words.skip(1)).filter(|(name, _)| *name == "password")
}

/// The lines of Base64 in keys and certificates.
fn key_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    text.lines().map(str::trim).filter(move |line| {
        if line.starts_with("-----") {
            is_inside = line.starts_with("-----BEGIN ") && line.contains("PRIVATE KEY");
            return false;
        }
        is_inside && line.len() >= SHORTEST_LINE
    })
}

/// A name with its words apart: `authToken` as `auth_Token`.
fn words_of(key: &str) -> String {
    let mut words = String::with_capacity(key.len() + 4);
    let mut before = ' ';
    for c in key.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            words.push('_');
        }
        words.push(c);
        before = c;
    }
    words
}

/// Whether a value is made of words and small numbers, as names, places and versions are.
fn is_plain(value: &str) -> bool {
    let is_word = |word: &str| {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = word.len() - letters.len();
        let rest = letters.strip_prefix(|c: char| c.is_ascii_uppercase()).unwrap_or(letters);
        let is_name =
            rest.chars().all(|c| c.is_lowercase()) || letters.chars().all(|c| c.is_ascii_uppercase());
        is_name && letters.len() <= 20 && digits <= 6
    };
    value.split(|c: char| !c.is_alphanumeric()).all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(name: &str, text: &str) -> Vec<String> {
        let mut secrets = Secrets::default();
        secrets.file(FileKind::of(name), name, text);
        secrets.iter().map(|(value, name)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn the_values_of_an_environment_file_are_hidden_but_for_plain_ones() {
        let text = "\
# SECRET_KEY=in-a-comment-9f31
export API_TOKEN=\"quoted-value-9f31\"
PLAIN=un9quoted8value7 # a comment
SINGLE='with = and # 12ab34cd'
SHORT_TOKEN=abc
DEBUG=true
HOST=localhost
PORT=8080
NODE_ENV=development
DB_PASSWORD=development
TZ=Europe/Berlin
REGION=us-east-1
IMAGE=postgres:16.2-alpine
DATABASE_URL=postgres://me:s3cr3t-of-db@db.example.org/app
DIR=/srv/app/data
EMPTY=
";
        assert_eq!(
            hidden(".env.local", text),
            [
                "SECRET_KEY: in-a-comment-9f31",
                "API_TOKEN: quoted-value-9f31",
                "DATABASE_URL: s3cr3t-of-db",
                "PLAIN: un9quoted8value7",
                "SINGLE: with = and # 12ab34cd",
            ]
        );
    }

    #[test]
    fn in_settings_the_values_of_secret_names_are_hidden() {
        let json = r#"{"name": "app-v9f31-x7", "authToken":"json-9f31-token", "db": {"password": "json \"9f31\" word", "port": 5432}}"#;
        assert_eq!(hidden("settings.json", json).len(), 2, "{:?}", hidden("settings.json", json));
        let toml = "[service]\nurl = \"https://example.org/a9f31\"\nclient_secret = \"toml-9f31-secret\"\n";
        assert_eq!(hidden("config.toml", toml), ["client_secret: toml-9f31-secret"]);
        let yaml = "service:\n  name: app-9f31\n  apiKey: yaml-9f31-key\n  - password: 'yaml-9f31-word'\n";
        assert_eq!(hidden("config.yaml", yaml), ["api_Key: yaml-9f31-key", "password: yaml-9f31-word"]);
        let netrc = "machine example.org login me password netrc-9f31-word\n";
        assert_eq!(hidden(".netrc", netrc), ["password: netrc-9f31-word"]);
        let npmrc = "//registry.example.org/:_authToken=npm-9f31-token\n";
        assert!(hidden(".npmrc", npmrc).iter().any(|found| found.ends_with("npm-9f31-token")));
    }

    #[test]
    fn keys_and_files_with_nothing_but_a_token_are_hidden() {
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ";
        let key = format!("-----BEGIN PRIVATE KEY-----\n{line}\nshort==\n-----END PRIVATE KEY-----\n");
        let json = format!("{{\"private_key\": \"{}\"}}", key.replace('\n', "\\n"));
        assert!(hidden("account.json", &json).contains(&format!("private_key: {line}")));
        assert_eq!(hidden("server.pem", &key), [format!("server.pem: {line}")]);
        assert_eq!(hidden("deploy-token", "only9f31token\n"), ["deploy-token: only9f31token"]);
        assert_eq!(hidden("notes.txt", "only9f31token\n"), [""; 0]);
    }

    #[test]
    fn a_file_is_known_by_its_name() {
        for name in [".env", ".env.local", "prod.env", "credentials.json", "secrets.yml", "tls.key", ".npmrc"]
        {
            assert_eq!(FileKind::of(name), FileKind::OfSecrets, "{name}");
        }
        for name in ["settings.json", "data.bin", "environment.md", "package.json"] {
            assert_eq!(FileKind::of(name), FileKind::Other, "{name}");
        }
    }

    #[test]
    fn a_hostile_file_yields_a_bounded_number_of_values() {
        let text: String = (0..5000).map(|number| format!("TOKEN_{number}=value-{number}-9f31\n")).collect();
        assert_eq!(hidden(".env", &text).len(), MOST);
        let started = std::time::Instant::now();
        hidden(".env", &":\"=".repeat(100_000));
        hidden(".env", &"a:".repeat(100_000));
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
        for odd in ["=", ":", "=\"", "a=\"unclosed 9f31 value", "\"", "ä=ö\u{0}", ":::::", "a='\\"] {
            let _ = hidden(".env", odd);
        }
    }
}
