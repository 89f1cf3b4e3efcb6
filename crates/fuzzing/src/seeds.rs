//! Bytes that make sense: the recordings of real agents, and small samples where there are none.

use std::fs;
use std::path::{Path, PathBuf};

use towline_agent::Kind;
use towline_core::{AgentEvent, Role, SessionId, SessionStarted, TurnEnd, TurnStop};

use crate::frames::HEADER;

/// What agents of this kind wrote, in the order of their names, each in some of the ways to set a conversation up.
pub(crate) fn of(kind: Kind) -> Vec<Vec<u8>> {
    let folder = match kind {
        Kind::Script => return script(),
        // It speaks the same protocol.
        Kind::Builtin => Kind::Acp.name(),
        kind => kind.name(),
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/testdata").join(folder);
    let mut files = files_of(&folder);
    files.sort();
    assert!(!files.is_empty(), "there are no recordings in {}", folder.display());
    let recording = |(place, file): (usize, &PathBuf)| {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let written: Vec<&str> = text.lines().filter(|line| !line.starts_with(">> ")).collect();
        with_header(place.to_le_bytes()[0], written.join("\n").as_bytes())
    };
    files.iter().enumerate().map(recording).collect()
}

/// The recordings in a folder and in those below it, which are of single programs.
fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_recording =
        |path: &Path| path.extension().is_some_and(|extension| extension == "ndjson" || extension == "txt");
    paths
        .flat_map(|path| match path.is_dir() {
            true => files_of(&path),
            false => Some(path).filter(|path| is_recording(path)).into_iter().collect(),
        })
        .collect()
}

/// What the scripted agent writes.
fn script() -> Vec<Vec<u8>> {
    let text = "Hi.".to_owned();
    let native_id = SessionId::new("s");
    let session = SessionStarted { native_id, resumed: false, model: None, agent_version: None };
    let (stop, structured) = (TurnStop::Done, None);
    let end = TurnEnd { stop, text: text.clone(), structured, inner_turns: None, reported_cost: None };
    let events = [
        AgentEvent::SessionStarted(session),
        AgentEvent::TurnStarted,
        AgentEvent::Message { role: Role::Assistant, text },
        AgentEvent::Progress { text: "half".to_owned(), percent: Some(50) },
        AgentEvent::TurnEnded(end),
    ];
    let lines: Vec<String> = events.iter().filter_map(|event| serde_json::to_string(event).ok()).collect();
    vec![with_header(0, lines.join("\n").as_bytes())]
}

/// The files of a run.
pub(crate) fn logs() -> Vec<Vec<u8>> {
    const SAMPLE: &[u8] =
        b"one\ntwo\nthree\n\0warning\n\0stdout 0 4 1000\nstderr 0 8 1500\nstdout 4 10 2000\n\0\
        {\"code\":0,\"signal\":null,\"started_at_ms\":1,\"ended_at_ms\":2}";
    let mut seeds = vec![SAMPLE.to_vec()];
    seeds.extend(of(Kind::Claude).into_iter().take(4).map(|mut seed| {
        let half = seed.len() / 2;
        seed.insert(half, 0);
        seed.extend_from_slice(b"\0stdout 0 4096 1000\nstderr 0 100 1000\nstdout 4096 99999999999 2000\n");
        seed
    }));
    seeds
}

/// Files of goals.
pub(crate) fn goals() -> Vec<Vec<u8>> {
    const SAMPLES: [&str; 3] = [
        "prompt = \"Mend it.\"\ntitle = \"Login\"\nmcp = { docs = { command = [\"docs\"] } }\n[[checks]]\nrun = \"make\"\n",
        "title: Login\nagents: [claude, 'codex']\nbudget: {usd: 2.5, wall: 2h}\nchecks:\n  - name: tests\n    run: >\n      make\n\
         metadata:\n  - a: \"b\"\n  - *c\n",
        "Help {{ who|upper }}.\n{% for file in files %}{{ file.name }}{% endfor %}\n{# a remark #}\n",
    ];
    SAMPLES.map(|sample| sample.as_bytes().to_vec()).to_vec()
}

pub(crate) fn config() -> Vec<Vec<u8>> {
    const SAMPLES: [&str; 3] = [
        "[defaults]\nagents = [\"claude\", \"codex\"]\nbudget = { attempts = 3, usd = 5.5, wall = \"2h\" }\n\
         [agents.claude]\nkind = \"claude\"\ncommand = [\"claude\"]\nmodel = \"opus\"\nallow = [\"Bash(git *)\"]\n\
         env = { A = \"b\" }\n[[checks]]\nname = \"tests\"\nrun = \"cargo test\"\ntimeout = \"10m\"\n",
        "defaults.agents = [\"x\"]\nagents.x.kind = \"command\"\nagents.x.command = [\"x\", \"{prompt_file}\"]\n\
         agents.x.prompt = \"file\"\nagents.x.session_pattern = \"^session: (.+)$\"\nworkspace.setup = [\"make\"]\n",
        "[agents.gemini]\nkind = \"acp\"\ncommand = [\"gemini\", \"--acp\"]\npermission = \"ask\"\nidle_timeout = 0x10\n",
    ];
    SAMPLES.iter().map(|sample| sample.as_bytes().to_vec()).collect()
}

/// Messages of agents and people to Towline.
pub(crate) fn words() -> Vec<Vec<u8>> {
    const SAMPLES: [&str; 7] = [
        "{\"question\": \"Which?\", \"options\": [\"a\", \"b\"], \"default\": \"a\", \"deadline\": \"10m\"}",
        "```json\n{\"towline\": \"ask\", \"question\": \"Which?\", \"options\": [\"a\"]}\n```",
        "{\"towline\": \"sleep\", \"seconds\": 600, \"reason\": \"CI\"}",
        "yes",
        "no; not that one",
        "1h 30m",
        "{\"end\":\"rate_limited\",\"until\":\"2026-01-01T00:00:00Z\"}",
    ];
    SAMPLES.iter().map(|sample| sample.as_bytes().to_vec()).collect()
}

fn with_header(first: u8, output: &[u8]) -> Vec<u8> {
    let mut seed = vec![0; HEADER];
    seed[0] = first;
    seed.extend_from_slice(output);
    seed
}
