//! The check that asks a program for its verdict: JSON on its standard input, JSON on its standard output.
//!
//! Anything but a clear "met" from a program that came to a good end is not met.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use towline_process::ReportedLog;

use crate::CheckError;
use crate::command::{ALTERED, Ended, Read};
use crate::evidence;
use crate::finding::Finding;
use crate::verdict::CheckRun;

/// The longest verdict that is read.
const MOST_BYTES: u64 = 1024 * 1024;

/// The longest summary that is shown.
const SUMMARY_CHARACTERS: usize = 500;

/// The longest part of what is wrong with an answer.
const REASON_CHARACTERS: usize = 200;

/// What the program is asked.
#[derive(Serialize)]
struct Question<'a> {
    goal: AboutGoal<'a>,
    check: &'a str,
    base: &'a str,
    candidate: &'a str,
    directory: &'a Path,
    restored: &'a [String],
}

#[derive(Serialize)]
struct AboutGoal<'a> {
    id: String,
    title: &'a str,
    prompt: &'a str,
}

/// What it answers.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Answer {
    met: bool,
    evidence: Option<String>,
    summary: Option<String>,
}

/// What the program reads: one JSON object and a newline.
pub(crate) fn question(run: &CheckRun<'_>, check: &str, checkout: &Path) -> Vec<u8> {
    let goal = run.goal;
    let question = Question {
        goal: AboutGoal { id: goal.id.to_string(), title: &goal.title, prompt: &goal.prompt },
        check,
        base: goal.workspace.base.as_str(),
        candidate: run.candidate.commit.as_str(),
        directory: checkout,
        restored: &run.candidate.restored,
    };
    // A path that is not UTF-8 cannot be sent; the program then reports that it finds nothing to read.
    let mut text = serde_json::to_vec(&question).unwrap_or_default();
    text.push(b'\n');
    text
}

/// What the program that has ended found.
pub(crate) async fn finding(ended: &Ended) -> Result<Finding, CheckError> {
    let answer = match (ended.problem(), ended.exit_code()) {
        (Some(problem), _) => Err(problem),
        (None, Some(0)) => match ended.read_stdout(answer).await? {
            Read::Genuine(answer) => answer,
            Read::Altered => Err(ALTERED.to_owned()),
        },
        (None, code) => {
            let code = code.map_or_else(String::new, |code| format!(" with exit code {code}"));
            Err(format!("the program failed{code}, so its answer does not count"))
        }
    };
    let finding = match answer {
        Err(problem) => Finding::not_met(problem).with_evidence(ended.evidence().await?),
        Ok(Answer { met, evidence, summary }) => {
            let summary = summary.as_deref().map(one_line).filter(|summary| !summary.is_empty());
            let evidence = match evidence.filter(|evidence| !evidence.trim().is_empty()) {
                Some(evidence) => evidence::beginning(evidence.as_bytes()),
                None => ended.stderr().await?,
            };
            match (met, summary) {
                (true, None) => Finding::met().with_evidence(evidence),
                (true, Some(summary)) => Finding::met()
                    .with_evidence(evidence::beginning(format!("{summary}\n{evidence}").as_bytes())),
                (false, summary) => {
                    let problem = summary.unwrap_or_else(|| "the program does not accept it".to_owned());
                    Finding::not_met(problem).with_evidence(evidence)
                }
            }
        }
    };
    Ok(finding.with_exit_code(ended.exit_code()))
}

/// The answer on the program's standard output, or what is wrong with it.
fn answer(stdout: &mut ReportedLog) -> io::Result<Result<Answer, String>> {
    let mut text = Vec::new();
    while text.len() as u64 <= MOST_BYTES {
        match stdout.read()? {
            [] => break,
            chunk => text.extend_from_slice(chunk),
        }
    }
    Ok(parse(&text))
}

fn parse(text: &[u8]) -> Result<Answer, String> {
    const EXPECTED: &str = "expected one JSON object such as {\"met\": false, \"evidence\": \"…\"}";
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("the program printed more than {} KiB; {EXPECTED}", MOST_BYTES >> 10));
    }
    if text.trim_ascii().is_empty() {
        return Err(format!("the program printed no verdict; {EXPECTED}"));
    }
    // By way of a map: a list with the right values in it would otherwise pass as an answer.
    let object: Map<String, Value> = serde_json::from_slice(text)
        .map_err(|error| format!("the program's output is no JSON object ({}); {EXPECTED}", short(&error)))?;
    serde_json::from_value(Value::Object(object))
        .map_err(|error| format!("the program's output is no verdict ({}); {EXPECTED}", short(&error)))
}

/// The parser's words, which may repeat a long value.
fn short(error: &serde_json::Error) -> String {
    error.to_string().chars().take(REASON_CHARACTERS).collect()
}

/// A summary as one line that is safe to show.
fn one_line(summary: &str) -> String {
    let plain = evidence::beginning(summary.as_bytes());
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ").chars().take(SUMMARY_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_one_object_with_a_field_for_the_result() {
        let answer = |met, evidence: Option<&str>, summary: Option<&str>| Answer {
            met,
            evidence: evidence.map(str::to_owned),
            summary: summary.map(str::to_owned),
        };
        assert_eq!(parse(b"{\"met\": true}"), Ok(answer(true, None, None)));
        assert_eq!(
            parse(b"\n {\"met\": false, \"evidence\": \"e\", \"summary\": \"s\", \"score\": 3} \n"),
            Ok(answer(false, Some("e"), Some("s")))
        );
        assert_eq!(parse(b"{\"met\": true, \"evidence\": null}"), Ok(answer(true, None, None)));
    }

    #[test]
    fn everything_else_is_no_answer_with_a_reason() {
        let large = format!("{{\"met\": true, \"evidence\": \"{}\"}}", "x".repeat(1 << 20));
        for (text, expected) in [
            ("", "printed no verdict"),
            (" \n", "printed no verdict"),
            ("all good", "no JSON object (expected value at line 1 column 1)"),
            ("{\"met\": true", "no JSON object (EOF"),
            ("{\"met\": true} {\"met\": true}", "no JSON object (trailing characters"),
            ("[true, null, null]", "no JSON object (invalid type: sequence"),
            ("true", "no JSON object (invalid type: boolean"),
            ("{}", "no verdict (missing field `met`)"),
            ("{\"met\": \"yes\"}", "no verdict (invalid type: string \"yes\""),
            ("{\"met\": true, \"evidence\": 3}", "no verdict (invalid type: integer `3`"),
            (&large, "printed more than 1024 KiB"),
        ] {
            let problem = parse(text.as_bytes()).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
        let long = parse(format!("{{\"met\": \"{}\"}}", "x".repeat(10_000)).as_bytes()).unwrap_err();
        assert!(long.len() < 400, "{long}");
    }

    #[test]
    fn a_summary_is_one_bounded_line() {
        assert_eq!(one_line(" two\nlines\t\u{1b}[31mred\u{1b}[0m "), "two lines red");
        assert_eq!(one_line(&"x".repeat(1000)), "x".repeat(SUMMARY_CHARACTERS));
    }
}
