//! What belongs to the operator of all projects: caps, shared money, the server, notifications, disk space. A repository's file
//! cannot set it; see `SetBy` in `schema`.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use towline_core::{AgentName, Caps, MicroUsd};

use crate::settings::Settings;
use crate::value::Value;

/// The port of a server that names none.
const PORT: u16 = 8689;

/// What goals may spend together; what is not limited is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SharedBudgets {
    /// All goals, in a day.
    pub day: Option<MicroUsd>,
    /// The goals of a project, in a day. A repository may set it for itself.
    pub project: Option<MicroUsd>,
    /// All goals, in all.
    pub pool: Option<MicroUsd>,
}

/// Where the server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    pub listen: SocketAddr,
    /// Further names by which it may be addressed.
    pub hosts: Vec<String>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)), hosts: Vec::new() }
    }
}

/// Who is notified when a goal needs its user or has ended.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NotifySettings {
    /// For goals of any origin.
    pub all: Channel,
    /// The variable that holds the secret which webhooks are signed with.
    pub secret_env: Option<String>,
    /// For goals whose origin has this channel.
    pub channels: BTreeMap<String, Channel>,
}

/// How somebody is notified.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Channel {
    /// Run by `sh`.
    pub command: Option<String>,
    /// The address that a request is sent to.
    pub webhook: Option<String>,
}

/// Names what is set, never to what: commands and addresses may hold tokens.
impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let set = |value: &Option<String>| value.as_ref().map(|_| "…");
        let (command, webhook) = (set(&self.command), set(&self.webhook));
        f.debug_struct("Channel").field("command", &command).field("webhook", &webhook).finish()
    }
}

impl std::fmt::Debug for NotifySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { all, secret_env, channels } = self;
        let mut debug = f.debug_struct("NotifySettings");
        debug.field("all", all).field("secret_env", secret_env).field("channels", channels).finish()
    }
}

pub(crate) fn caps(settings: &Settings) -> Caps {
    let cap = |path: &[&str]| settings.get::<u64>(path).map(|cap| usize::try_from(cap).unwrap_or(usize::MAX));
    let caps = |kind: &str| {
        let names = settings.names_below(&["caps", kind]).into_iter();
        names
            .filter_map(|(name, _)| Some((name.clone(), cap(&["caps", kind, &name])?)))
            .collect::<BTreeMap<_, _>>()
    };
    Caps {
        pool: cap(&["caps", "pool"]).unwrap_or(Caps::default().pool),
        project: cap(&["caps", "project"]),
        agents: caps("agents").into_iter().map(|(name, cap)| (AgentName::new(name), cap)).collect(),
        accounts: caps("accounts"),
        labels: caps("labels"),
    }
}

pub(crate) fn shared_budgets(settings: &Settings) -> SharedBudgets {
    let usd = |scope| settings.get(&["budget", scope, "usd"]);
    SharedBudgets { day: usd("day"), project: usd("project"), pool: usd("pool") }
}

pub(crate) fn server(settings: &Settings) -> ServerSettings {
    let listen = settings.get(&["server", "listen"]).unwrap_or_else(|| ServerSettings::default().listen);
    ServerSettings { listen, hosts: settings.get(&["server", "hosts"]).unwrap_or_default() }
}

pub(crate) fn free_space(settings: &Settings) -> u64 {
    let free = settings.values.get(&crate::schema::KeyPath::of(&["retention", "free"]));
    free.and_then(|setting| if let Value::Bytes(bytes) = setting.value { Some(bytes) } else { None })
        .unwrap_or(0)
}

pub(crate) fn notify(settings: &Settings) -> NotifySettings {
    let channel = |path: &[&str]| Channel {
        command: settings.get(&[path, &["command"]].concat()),
        webhook: settings.get(&[path, &["webhook"]].concat()),
    };
    let names = settings.names_below(&["notify", "channels"]).into_iter();
    NotifySettings {
        all: channel(&["notify"]),
        secret_env: settings.get(&["notify", "secret_env"]),
        channels: names.map(|(name, _)| (name.clone(), channel(&["notify", "channels", &name]))).collect(),
    }
}
