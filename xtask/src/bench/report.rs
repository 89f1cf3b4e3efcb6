//! The figures of all benchmarks, as tables.

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Around the figures in the page that keeps them.
const BEGIN: &str = "<!-- figures -->";
const END: &str = "<!-- end of figures -->";

/// All figures, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Report {
    figures: Vec<Figure>,
}

/// One figure of a benchmark.
#[derive(Debug)]
struct Figure {
    section: String,
    what: String,
    figure: String,
    goal: String,
    beside: String,
    met: bool,
    gates: bool,
}

impl Report {
    /// Takes over what a benchmark printed.
    pub(super) fn add(&mut self, printed: &str) -> Result<()> {
        for line in printed.lines().filter(|line| !line.trim().is_empty()) {
            let figure = figure(line).with_context(|| format!("a benchmark printed `{line}`"))?;
            self.figures.push(figure);
        }
        Ok(())
    }

    /// A table for each section.
    pub(super) fn tables(&self) -> String {
        let mut text = String::new();
        let mut section = "";
        for figure in &self.figures {
            if figure.section != section {
                let gap = if section.is_empty() { "" } else { "\n" };
                section = &figure.section;
                text +=
                    &format!("{gap}| {section} | figure | goal | beside it |\n| --- | ---: | ---: | --- |\n");
            }
            let goal = match (figure.goal.as_str(), figure.met) {
                (goal, true) => goal.to_owned(),
                (goal, false) => format!("**{goal}, missed**"),
            };
            let gate = if figure.gates { " (gates)" } else { "" };
            text += &format!("| {} | {} | {goal}{gate} | {} |\n", figure.what, figure.figure, figure.beside);
        }
        text
    }

    /// Ratios that were missed.
    pub(super) fn missed(&self) -> Vec<String> {
        let missed = self.figures.iter().filter(|figure| figure.gates && !figure.met);
        missed.map(|figure| format!("{}: {} ({})", figure.what, figure.figure, figure.goal)).collect()
    }
}

fn figure(line: &str) -> Result<Figure> {
    let json: Value = serde_json::from_str(line)?;
    let text = |name: &str| json[name].as_str().map(str::to_owned).with_context(|| format!("no `{name}`"));
    let flag = |name: &str| json[name].as_bool().with_context(|| format!("no `{name}`"));
    Ok(Figure {
        section: text("section")?,
        what: text("what")?,
        figure: text("figure")?,
        goal: text("goal")?,
        beside: text("beside")?,
        met: flag("met")?,
        gates: flag("gates")?,
    })
}

/// A page with these figures in place of its own.
pub(super) fn in_page(page: &str, figures: &str) -> Result<String> {
    let Some((before, rest)) = page.split_once(BEGIN) else { bail!("it has no `{BEGIN}`") };
    let Some((_, after)) = rest.split_once(END) else { bail!("it has no `{END}`") };
    Ok(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", figures.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(what: &str, met: bool, gates: bool) -> String {
        serde_json::json!({
            "section": "Speed", "what": what, "figure": "7 MB/s", "goal": "≥ 9", "beside": "", "met": met, "gates": gates,
        })
        .to_string()
    }

    #[test]
    fn only_a_missed_ratio_is_a_failure_and_every_miss_is_shown() {
        let mut report = Report::default();
        let printed = [line("a", true, true), line("b", false, false), line("c", false, true)].join("\n");
        report.add(&printed).expect("figures");
        assert_eq!(report.missed(), ["c: 7 MB/s (≥ 9)"]);
        let wanted = "| Speed | figure | goal | beside it |\n| --- | ---: | ---: | --- |\n\
                      | a | 7 MB/s | ≥ 9 (gates) |  |\n| b | 7 MB/s | **≥ 9, missed** |  |\n\
                      | c | 7 MB/s | **≥ 9, missed** (gates) |  |\n";
        assert_eq!(report.tables(), wanted);
    }

    #[test]
    fn what_is_no_figure_is_not_passed_over() {
        for other in ["warning: something", "{}", r#"{"section":"x"}"#] {
            assert!(Report::default().add(other).is_err(), "{other}");
        }
    }

    #[test]
    fn figures_take_the_place_of_the_old_ones() {
        let page = format!("# Title\n\n{BEGIN}\nold\n{END}\n\nMore.\n");
        let wanted = format!("# Title\n\n{BEGIN}\n\nnew\n\n{END}\n\nMore.\n");
        assert_eq!(in_page(&page, "new\n").expect("a page"), wanted);
        assert!(in_page("# Title\n", "new").is_err());
    }
}
