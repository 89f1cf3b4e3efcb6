//! Tool calls of the model: reported, permitted, run, and their results recorded.

use std::io::Read;
use std::path::{Path, PathBuf};

use futures::future::join_all;
use serde_json::{Value, json};
use towline_provider::{Call, CallResult};

use super::progress::run_with_progress;
use super::record::{Mode, Record};
use super::trouble::Trouble;
use super::turn::Turn;
use super::updates;
use crate::tools::{Described, Outcome, Reach, Status, ToolKind};

/// A change to a larger file is not shown.
const SHOWN_BYTES: u64 = 256 * 1024;

/// A call and its description, which is `None` for an unknown tool.
struct Wanted {
    call: Call,
    described: Option<Described>,
}

impl Wanted {
    /// Whether it changes nothing, so that it may run beside others.
    fn looks(&self) -> bool {
        self.described.as_ref().is_none_or(|described| described.reach == Reach::Looks)
    }
}

impl Turn<'_> {
    /// Runs all calls of an answer. Adjacent calls that only read run at the same time, all others one by one.
    pub(super) async fn carry_out(&self, calls: Vec<Call>) -> Result<(), Trouble> {
        let describe = |call: Call| Wanted { described: self.session.hands.describe(&call), call };
        let wanted: Vec<_> = calls.into_iter().map(describe).collect();
        for Wanted { call, described } in &wanted {
            let unknown = updates::unknown_tool(call);
            let update = updates::tool_call(call, described.as_ref().unwrap_or(&unknown));
            self.outbox.update(&self.session.id, update);
        }
        let mut rest = wanted.as_slice();
        while !rest.is_empty() {
            let together = rest.iter().take_while(|wanted| wanted.looks()).count().max(1);
            let (now, later) = rest.split_at(together);
            for result in join_all(now.iter().map(|wanted| self.call(wanted))).await {
                self.session.record(Record::Result { result })?;
            }
            rest = later;
        }
        Ok(())
    }

    async fn call(&self, Wanted { call, described }: &Wanted) -> CallResult {
        let (outcome, changes) = match described {
            None => {
                let known: Vec<_> = self.session.hands.specs().into_iter().map(|spec| spec.name).collect();
                let words = format!("There is no tool `{}`. There are: {}.", call.name, known.join(", "));
                (Outcome::failed(words), Vec::new())
            }
            Some(described) if !self.may(call, described).await => {
                let words = "This call was not permitted. Do without it, or find another way.";
                (Outcome::failed(words), Vec::new())
            }
            Some(described) => self.run_call(call, described).await,
        };
        let update = updates::tool_ended(&call.id, outcome.status, &outcome.output, changes);
        self.outbox.update(&self.session.id, update);
        CallResult {
            id: call.id.clone(),
            name: call.name.clone(),
            output: outcome.output,
            failed: outcome.status == Status::Failed,
        }
    }

    /// Runs a call and returns its changes to files as well.
    async fn run_call(&self, call: &Call, described: &Described) -> (Outcome, Vec<Value>) {
        let send_progress = |printed: Option<&str>| {
            self.outbox.update(&self.session.id, updates::tool_runs(&call.id, printed));
        };
        send_progress(None);
        let before = contents(described);
        let outcome =
            run_with_progress(&self.session.hands, call, |printed| send_progress(Some(printed))).await;
        let changes = before.into_iter().filter_map(|(path, before)| change(&path, before.as_deref()));
        (outcome, changes.collect())
    }

    /// Whether the call is permitted: because it only reads, by the mode, by an earlier answer, or by the client's
    /// answer now.
    async fn may(&self, call: &Call, described: &Described) -> bool {
        let is_free = described.reach == Reach::Looks || self.session.mode() == Mode::Bypass;
        if is_free || self.session.is_permitted(call, described) {
            return true;
        }
        let option = |kind: &str, name: &str| json!({"optionId": kind, "name": name, "kind": kind});
        let params = json!({
            "sessionId": self.session.id,
            "toolCall": updates::call_details(call, described),
            "options": [
                option("allow_once", "Allow"),
                option("allow_always", "Allow all such calls in this session"),
                option("reject_once", "Reject"),
            ],
        });
        let answer = self.outbox.ask("session/request_permission", params).await.unwrap_or_default();
        let chosen = answer.pointer("/outcome/optionId").and_then(Value::as_str);
        if chosen == Some("allow_always") {
            self.session.permit(call, described);
        }
        matches!(chosen, Some("allow_once" | "allow_always"))
    }
}

/// The content of the files that a call is about to change, `None` for a file that does not exist.
fn contents(described: &Described) -> Vec<(PathBuf, Option<String>)> {
    if described.kind != ToolKind::Edit {
        return Vec::new();
    }
    described.paths.iter().map(|path| (path.clone(), content(path))).collect()
}

fn content(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = towline_files::open_following(path).ok()?;
    file.take(SHOWN_BYTES + 1).read_to_string(&mut text).ok()?;
    Some(text)
}

fn change(path: &Path, before: Option<&str>) -> Option<Value> {
    let after = content(path)?;
    let is_short = |text: &str| u64::try_from(text.len()).is_ok_and(|length| length <= SHOWN_BYTES);
    if before == Some(after.as_str()) || !is_short(&after) || !before.is_none_or(is_short) {
        return None;
    }
    Some(json!({"type": "diff", "path": path, "oldText": before, "newText": after}))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_pipe_has_no_content_and_blocks_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let (found, finding) = mpsc::channel();
        thread::spawn(move || found.send(content(&pipe)));
        assert_eq!(finding.recv_timeout(Duration::from_secs(20)), Ok(None));
    }
}
