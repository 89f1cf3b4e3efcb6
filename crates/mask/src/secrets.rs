//! Which values are secret: by the name of the variable that holds them, or because a setting names them.

use std::collections::BTreeMap;

use crate::shapes::{SHAPES, Shape};

/// The shortest value that is hidden: a shorter one would hide half of every text.
const SHORTEST: usize = 8;
/// From this length on, a value is hidden although it looks like a word.
const NO_WORD: usize = 16;

/// Parts of names that mark a value as secret.
const SECRET_PARTS: [&str; 25] = [
    "APIKEY",
    "AUTH",
    "AUTHORIZATION",
    "BEARER",
    "COOKIE",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "DSN",
    "HEADERS",
    "JWT",
    "PASS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PAT",
    "PRIV",
    "PW",
    "PWD",
    "SECRET",
    "SECRETS",
    "SIGNATURE",
    "TOKEN",
    "WEBHOOK",
    "WEBHOOKS",
];

/// The same for parts that are looked for anywhere in a name.
const SECRET_WITHIN: [&str; 2] = ["CONNECTION_STRING", "CONNECTIONSTRING"];

/// What comes before a secret in lists of settings, such as connection strings.
const SECRET_SETTINGS: [&str; 4] = ["accountkey=", "password=", "pwd=", "sharedaccesskey="];

/// Names that contain such a part and hold no secret.
const HARMLESS_NAMES: [&str; 3] = ["PWD", "OLDPWD", "TERM"];

/// Values that are long enough to be hidden, and so common that it would hide half of every text.
const COMMON: [&str; 10] = [
    "0.0.0.0:8080",
    "127.0.0.1",
    "changeme",
    "development",
    "disabled",
    "localhost",
    "localhost:8080",
    "password",
    "postgres",
    "production",
];

/// Values that switch something on or off.
const SWITCHES: [&str; 8] = ["0", "1", "true", "false", "yes", "no", "on", "off"];

/// Values to be hidden, and the names they go by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// By value, so that each has one name whichever way it came in.
    names: BTreeMap<String, String>,
}

impl Secrets {
    /// Adds a variable if its name or its value shows that it is secret.
    pub fn variable(&mut self, name: &str, value: &str) {
        match password_of_url(value) {
            Some(password) => self.add(name, password),
            None if is_secret_address(name, value) => self.insert(name, value),
            None if is_secret_name(name, value) || is_secret_value(value) => self.add(name, value),
            None => {}
        }
    }

    /// Adds a variable that is handed on by name, which nobody does with what everybody may know: all but plain words
    /// and numbers.
    pub fn handed_on(&mut self, name: &str, value: &str) {
        if is_secret_name(name, value) || !is_word(value) {
            self.add(name, password_of_url(value).unwrap_or(value));
        }
    }

    /// Adds a value that is secret whatever its name. One that is too short, a path, or an address is not hidden.
    pub fn add(&mut self, name: &str, value: &str) {
        let value = value.trim();
        if value.chars().count() >= SHORTEST && !is_trivial(value) && !value.contains("[masked") {
            self.insert(name, value);
        }
    }

    fn insert(&mut self, name: &str, value: &str) {
        self.names.entry(value.trim().to_owned()).or_insert_with(|| label(name));
    }

    /// Adds all of the others.
    pub fn extend(&mut self, others: &Self) {
        for (value, name) in &others.names {
            self.names.entry(value.clone()).or_insert_with(|| name.clone());
        }
    }

    /// No more than so many of them.
    pub(crate) fn first(self, count: usize) -> Self {
        Self { names: self.names.into_iter().take(count).collect() }
    }

    /// The values with their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().map(|(value, name)| (value.as_str(), name.as_str()))
    }
}

/// Whether a variable holds a secret: its name looks secret, or its value is an address with a password. A path, an address
/// without credentials and a switch are no secrets whatever their name. Whatever [`Secrets::variable`] hides is one; what is
/// too short to be hidden in text may be one, too.
pub fn is_secret_variable(name: &str, value: &str) -> bool {
    let value = value.trim();
    let is_switch = SWITCHES.contains(&value.to_ascii_lowercase().as_str());
    password_of_url(value).is_some()
        || is_secret_address(name, value)
        || is_secret_value(value)
        || (is_secret_name(name, value) && !is_switch && !is_trivial(value))
}

/// Whether a value is secret whatever its name: a token by its shape, or settings with a password among them.
fn is_secret_value(value: &str) -> bool {
    let value = value.trim();
    let lower = value.to_ascii_lowercase();
    let has_setting =
        || lower.split(';').any(|part| SECRET_SETTINGS.iter().any(|name| part.trim().starts_with(name)));
    let is_token = |shape: &Shape| value.starts_with(shape.beginning) && shape.read(value, 0).is_some();
    SHAPES.iter().any(is_token) || (value.contains(';') && has_setting())
}

/// Whether a whole address is secret: it grants access by itself.
fn is_secret_address(name: &str, value: &str) -> bool {
    let parts = parts_of(name);
    let Some((_, rest)) = value.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is = |wanted: &str| parts.iter().any(|part| part.starts_with(wanted));
    is("WEBHOOK") || (is("DSN") && authority.contains('@'))
}

/// The words of a name: `npm_config__authToken` has four.
fn parts_of(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() || (before.is_ascii_lowercase() && c.is_ascii_uppercase()) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            part.push(c.to_ascii_uppercase());
        }
        before = c;
    }
    parts
}

/// A name in the form that a marker uses.
fn label(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let label: String = name.chars().filter(|c| fits(*c)).take(64).collect();
    if label.is_empty() { "secret".to_owned() } else { label }
}

/// Whether a variable of this name holds a secret. Many things are called a key: a plain word is none.
pub(crate) fn is_secret_name(name: &str, value: &str) -> bool {
    let parts = parts_of(name);
    let name = name.to_ascii_uppercase();
    if HARMLESS_NAMES.contains(&name.as_str()) || name.starts_with("GIT_CONFIG_KEY_") {
        return false;
    }
    if parts.iter().any(|part| SECRET_PARTS.contains(&part.as_str()) || part.ends_with("PASSWORD"))
        || name.starts_with("OP_SESSION_")
        || SECRET_WITHIN.iter().any(|within| name.contains(within))
    {
        return true;
    }
    let is_key = parts.iter().any(|part| part.ends_with("KEY"));
    is_key && (name.contains("API_KEY") || name.contains("SECRET") || !is_word(value))
}

/// Whether a value is no more than a word, a few words, or a number.
fn is_word(value: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || matches!(c, ' ' | '-' | '_' | ',' | '.' | ':' | '=');
    let is_number = value.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | ':'));
    value.chars().count() < NO_WORD && (value.chars().all(is_plain) || is_number)
}

/// Whether a value is too common to hide: a path, an address without credentials, a word of every setup.
fn is_trivial(value: &str) -> bool {
    is_path(value)
        || COMMON.contains(&value.to_ascii_lowercase().as_str())
        || value.contains("://")
        || value.chars().all(|c| !c.is_alphanumeric())
}

fn is_path(value: &str) -> bool {
    let Some(rest) = ["/", "./", "../", "~/"].iter().find_map(|start| value.strip_prefix(start)) else {
        return false;
    };
    let is_random = |part: &str| {
        let has = |wanted: fn(&char) -> bool| part.chars().any(|c| wanted(&c));
        part.len() >= 16
            && has(char::is_ascii_digit)
            && has(char::is_ascii_uppercase)
            && has(char::is_ascii_lowercase)
    };
    !rest.contains(['+', '=']) && !rest.split('/').any(is_random)
}

/// The password in an address that has one.
fn password_of_url(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty()).then_some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(name: &str, value: &str) -> Vec<String> {
        let mut secrets = Secrets::default();
        secrets.variable(name, value);
        secrets.iter().map(|(value, _)| value.to_owned()).collect()
    }

    #[test]
    fn a_variable_is_secret_by_its_name_unless_its_value_is_nothing_to_hide() {
        let secret = [
            ("ANTHROPIC_API_KEY", "abcd-efgh"),
            ("GITHUB_TOKEN", "onlywords"),
            ("DB_PASSWORD", "correct horse"),
            ("PGPASSWORD", "correct horse"),
            ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCY"),
            ("DEPLOY_KEY", "a1b2c3d4e5"),
            ("npm_config_auth", "aGVsbG86d29ybGQ="),
            ("npm_config__authToken", "onlywords"),
            ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=me;AccountKey=c2VjcmV0;EndpointSuffix=x"),
            ("STORAGE", "AccountName=me;AccountKey=c2VjcmV0;EndpointSuffix=x"),
            ("SLACK_WEBHOOK", "https://hooks.example.org/services/T0/B0/x1y2z3"),
            ("SENTRY_DSN", "https://0123456789abcdef@errors.example.org/7"),
            ("OP_SESSION_me", "c2Vzc2lvbg1234"),
            ("STRIPE", "sk_live_0123456789abcdefghijklmn"),
            ("CREDS", "me-and-you-1"),
            ("DEPLOY_PW", "correct horse"),
            ("BEARER", "correct horse"),
            ("SIGNING_PRIV", "correct horse"),
        ];
        for (name, value) in secret {
            assert_eq!(hidden(name, value), [value], "{name}");
            assert!(is_secret_variable(name, value), "{name}");
        }
        let harmless = [
            ("PATH", "/usr/bin:/bin/something"),
            ("HOME", "/srv/people/somebody"),
            ("SORT_KEY", "created_at"),
            ("MAX_OUTPUT_TOKENS", "200000000"),
            ("KEYBOARD_LAYOUT", "de-latin1-nodeadkeys"),
            ("API_TOKEN", "true"),
            ("API_TOKEN", "1"),
            ("SSH_AUTH_SOCK", "/run/user/1000/keyring/ssh"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/srv/people/somebody/keys/service.json"),
            ("AUTH_URL", "https://login.example.org/token"),
            ("DATABASE_DSN", "postgres://db.example.org/x"),
            ("XDG_SESSION_TYPE", "wayland-session-1"),
            ("LS_COLORS", "rs=0;di=01;34:ln=01;36"),
            ("GIT_CONFIG_KEY_0", "safe.directory1"),
            ("PWD", "some-directory-1"),
        ];
        for (name, value) in harmless {
            assert_eq!(hidden(name, value), [""; 0], "{name}");
            assert!(!is_secret_variable(name, value), "{name}");
        }
        for (name, value) in [("DB_PASSWORD", "hunter2"), ("DATABASE_URL", "postgres://me:pw@db/x")] {
            assert!(
                is_secret_variable(name, value),
                "{name} is too short to be hidden and a secret all the same"
            );
        }
        for (name, value) in
            [("HTTPS_PROXY", "http://proxy.example.org:3128"), ("API_TOKEN", ""), ("USE_AUTH", "off")]
        {
            assert!(!is_secret_variable(name, value), "{name}");
        }
    }

    #[test]
    fn of_an_address_with_credentials_the_password_is_hidden() {
        assert_eq!(hidden("DATABASE_URL", "postgres://me:s3cretpass@db.example.org/x"), ["s3cretpass"]);
        assert_eq!(hidden("DATABASE_URL", "postgres://me@db.example.org/x"), [""; 0]);
    }

    #[test]
    fn what_is_handed_on_by_name_is_hidden_but_for_plain_words() {
        let hidden = |value: &str| {
            let mut secrets = Secrets::default();
            secrets.handed_on("MY_PROXY", value);
            secrets.iter().count()
        };
        assert_eq!(
            ["R4nd0mValue", "debug,hyper=info", "production", "8080:8081", "/usr/local/bin"].map(hidden),
            [1, 1, 0, 0, 0]
        );
    }
}
