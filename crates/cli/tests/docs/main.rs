//! The documentation is true: its commands are typed as a reader would type them, page by page, and its configuration is
//! read.
//!
//! The agents are the real CLIs; only the model behind them is scripted.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod page;
mod reader;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::path::Path;

use page::{Page, pages};
use reader::{NOT_TYPED, Reader};

fn page(name: &str) -> Page {
    pages().into_iter().find(|page| page.name == name).unwrap_or_else(|| panic!("there is no page {name}"))
}

#[test]
fn the_readme_leads_from_a_clone_to_a_merged_fix() {
    let reader = Reader::with_the_sample_project();
    reader.follow(&page("README.md"));
    assert_eq!(reader.merged_goals(), 2, "the demo's and the reader's own");
}

#[test]
fn getting_started_leads_from_a_clone_to_a_merged_fix() {
    let reader = Reader::with_nothing();
    reader.follow(&page("docs/getting-started.md"));
    assert_eq!(reader.merged_goals(), 2, "the demo's and the reader's own");
}

#[test]
fn the_commands_of_every_other_page_work() {
    let tested_above = ["README.md", "docs/getting-started.md"];
    for page in pages().iter().filter(|page| !tested_above.contains(&page.name.as_str())) {
        if page.commands().next().is_some() {
            let reader = Reader::with_a_proven_goal();
            reader.follow(page);
        }
    }
}

#[test]
fn every_command_that_is_named_in_passing_is_understood() {
    let reader = Reader::with_nothing();
    let named: BTreeSet<String> = pages().iter().flat_map(Page::named_commands).collect();
    assert!(named.len() > 20, "{named:?}");
    let not_understood: Vec<String> =
        named.into_iter().filter_map(|command| reader.misunderstood(&command)).collect();
    assert!(not_understood.is_empty(), "{}", not_understood.join("\n"));
}

#[test]
fn every_example_of_a_configuration_is_one() {
    let reader = Reader::with_the_sample_project();
    for page in pages() {
        let is_configuration = |block: &&page::Block| block.language == "toml" && !block.is_goal();
        for block in page.blocks.iter().filter(is_configuration) {
            let complaints = reader.complaints_about_configuration(&block.text);
            assert!(complaints.is_empty(), "{}:{}: {}", page.name, block.line, complaints.join("\n"));
        }
    }
}

#[test]
fn every_example_of_a_goal_is_one() {
    let pages = pages();
    let goals: Vec<_> = pages.iter().flat_map(|page| &page.blocks).filter(|block| block.is_goal()).collect();
    assert!(!goals.is_empty());
    for block in goals {
        let name = format!("goal.{}", if block.language == "toml" { "toml" } else { "md" });
        let goal = towline_config::read_goal_file(Path::new(&name), &block.text).expect("a goal");
        assert!(goal.prompt.is_some(), "{}", block.text);
        assert_eq!(goal.warnings, [], "{}", block.text);
    }
}

#[test]
fn what_is_not_typed_is_in_the_documentation() {
    let pages = pages();
    let commands: Vec<&str> =
        pages.iter().flat_map(Page::commands).flat_map(|block| block.text.lines()).collect();
    for (beginning, _) in NOT_TYPED {
        assert!(commands.iter().any(|line| line.starts_with(beginning)), "no page has {beginning:?}");
    }
}

#[test]
fn every_reference_between_pages_leads_somewhere() {
    let pages = pages();
    let dead: Vec<String> = pages.iter().flat_map(|page| page.dead_references(&pages)).collect();
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}
