//! Walks layers along the table of known keys and keeps, for each key, the last word.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::checks;
use crate::error::Problem;
use crate::layer::{ENVIRONMENT_PREFIX, Layer, LayerContent, LayerName, Origin, Place};
use crate::schema::{Effect, Found, KeyPath, Schema, SetBy, Shape};
use crate::trust::{OwnAgents, Trusting};
use crate::value::{self, FromValue, Refused, Value};

/// Where a setting belongs that a repository cannot make.
const USERS_OWN: &str = "it is about all your projects, not about one repository: put it into your own file, usually \
                         ~/.config/towline/config.toml";

#[derive(Debug, Clone)]
pub(crate) struct Setting {
    /// What it is set to.
    pub(crate) value: Value,
    pub(crate) place: Place,
    /// Whether that does anything.
    pub(crate) effect: Effect,
}

/// All settings of the layers read so far.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// Which keys there are.
    schema: Schema,
    pub(crate) values: BTreeMap<KeyPath, Setting>,
    /// Tables, even empty ones: `[agents.x]` names an agent before it sets anything about it.
    tables: BTreeMap<KeyPath, Place>,
    /// What is wrong with the layers.
    pub(crate) problems: Vec<Problem>,
    /// Those of a repository's file that need the user's trust.
    pub(crate) widening: BTreeMap<KeyPath, Setting>,
    /// Whether these count.
    trusting: Trusting,
    /// What the user's own layers have.
    own_agents: OwnAgents,
}

impl Settings {
    /// No settings yet, where those that need the user's trust, whose own agents these are, count or do not.
    pub(crate) fn trusting(trusting: Trusting, own_agents: OwnAgents) -> Self {
        Self { trusting, own_agents, ..Self::default() }
    }

    /// No settings yet, by these keys.
    pub(crate) fn with(schema: Schema) -> Self {
        Self { schema, ..Self::default() }
    }

    /// Reads a layer over those before it.
    pub(crate) fn add(&mut self, layer: &Layer) {
        match &layer.content {
            LayerContent::Toml(text) => self.add_toml(Origin::of(&layer.name, text), text),
            LayerContent::Generated(text) => self.add_toml(Origin::without_positions(&layer.name), text),
            LayerContent::Pairs(pairs) => {
                for (key, text) in pairs {
                    self.add_pair(&layer.name, key, text);
                }
            }
        }
    }

    /// All that a text sets.
    pub(crate) fn add_toml(&mut self, origin: Origin<'_>, text: &str) {
        match DeTable::parse(text) {
            Ok(table) => self.add_sorted(origin, table.get_ref()),
            Err(error) => {
                let place = origin.place(error.span().unwrap_or_default());
                self.report("invalid TOML".to_owned(), place, error.message().to_owned());
            }
        }
    }

    /// A single setting. Walks down its names first, so that the first wrong one is the one reported.
    fn add_pair(&mut self, layer: &LayerName, key: &str, text: &str) {
        let origin = Origin::without_positions(layer);
        let names = pair_names(layer, key);
        let Some((last, parents)) = names.split_last() else { return };
        let mut path = KeyPath::default();
        for name in parents {
            path = path.join(name);
            let place = origin.place(0..0);
            match self.schema.find(&path) {
                Found::Table => self.tables.insert(path.clone(), place),
                Found::Key(_) => {
                    let fix = format!("set `{path}` as a whole");
                    return self.report(format!("`{path}` has no single keys"), place, fix);
                }
                Found::Unknown => return self.report_unknown(&path, place),
            };
        }
        let path = path.join(last);
        let value = pair_value(&self.schema.find(&path), text);
        self.add_value(origin, &path, 0..0, &value);
    }

    /// All that a file sets, with what is wrong in the order of its lines.
    pub(crate) fn add_sorted(&mut self, origin: Origin<'_>, table: &DeTable<'_>) {
        let first_new = self.problems.len();
        self.add_table(origin, &KeyPath::default(), table);
        // Tables come sorted by name; people read a file from the top.
        self.problems[first_new..].sort_by_key(|problem| problem.place.position);
    }

    /// All that a table sets.
    pub(crate) fn add_table(&mut self, origin: Origin<'_>, path: &KeyPath, table: &DeTable<'_>) {
        for (name, value) in table {
            self.add_value(origin, &path.join(name.get_ref()), name.span(), value);
        }
    }

    fn add_value(
        &mut self,
        origin: Origin<'_>,
        path: &KeyPath,
        name: Range<usize>,
        value: &Spanned<DeValue<'_>>,
    ) {
        match (self.schema.find(path), value.get_ref()) {
            (Found::Key(key), _) => {
                let read = match key.shape {
                    Shape::Checks => checks::read(self, origin, value),
                    shape => value::read(shape, value),
                };
                let place = origin.place(name);
                match read {
                    Ok(_) if key.set_by == SetBy::UserOnly && origin.is_repository() => {
                        self.report(format!("`{path}` cannot be set"), place, USERS_OWN.to_owned());
                    }
                    Ok(value) => {
                        let widens = origin.is_repository() && key.trust.is_needed(&value, &self.own_agents);
                        self.set(path, Setting { value, place, effect: key.effect }, widens);
                    }
                    Err(refused) => self.refuse(origin, path, refused),
                }
            }
            (Found::Table, DeValue::Table(table)) => {
                self.tables.insert(path.clone(), origin.place(name));
                self.add_table(origin, path, table);
            }
            (Found::Table, _) => {
                let fix = format!("it holds other keys: write it as `[{path}]`");
                self.refuse(origin, path, value::refuse(value, fix));
            }
            (Found::Unknown, _) => self.report_unknown(path, origin.place(name)),
        }
    }

    fn set(&mut self, path: &KeyPath, setting: Setting, widens: bool) {
        if widens {
            self.widening.insert(path.clone(), setting.clone());
        }
        if !widens || self.trusting == Trusting::All {
            self.values.insert(path.clone(), setting);
        }
    }

    fn report_unknown(&mut self, path: &KeyPath, place: Place) {
        self.report(format!("unknown key `{path}`"), place, self.schema.suggestion(path));
    }

    /// Takes note of a value that cannot be taken.
    pub(crate) fn refuse(&mut self, origin: Origin<'_>, path: &KeyPath, refused: Refused) {
        let Refused { found, span, fix } = refused;
        self.report(format!("`{path}` cannot be {found}"), origin.place(span), fix);
    }

    /// Takes note of a problem.
    pub(crate) fn report(&mut self, what: String, place: Place, fix: String) {
        self.problems.push(Problem { what, place, fix });
    }

    /// Takes note of what is wrong with a key, if it is set.
    pub(crate) fn report_key(&mut self, path: &[&str], what: &str, fix: &str) {
        // A table has no place of its own: the first entry of it has.
        let below = || self.names_below(path).into_iter().next().map(|(_, place)| place);
        if let Some(place) = self.place(path).cloned().or_else(below) {
            self.report(format!("`{}` {what}", KeyPath::of(path)), place, fix.to_owned());
        }
    }

    /// Adds those settings that nobody has made.
    pub(crate) fn fill_in(&mut self, others: Self) {
        for (path, setting) in others.values {
            self.values.entry(path).or_insert(setting);
        }
    }

    /// What a key is set to.
    pub(crate) fn get<T: FromValue>(&self, path: &[&str]) -> Option<T> {
        T::from_value(&self.values.get(&KeyPath::of(path))?.value)
    }

    /// Where a key was set.
    pub(crate) fn place(&self, path: &[&str]) -> Option<&Place> {
        self.values.get(&KeyPath::of(path)).map(|setting| &setting.place)
    }

    /// The tables and settings right below a path, by name, each with the place where it was last spoken of.
    pub(crate) fn names_below(&self, path: &[&str]) -> Vec<(String, Place)> {
        let parent = KeyPath::of(path);
        let settings = self.values.iter().map(|(path, setting)| (path, &setting.place));
        let all = self.tables.iter().chain(settings);
        let below = all.filter(|(path, _)| path.0.len() == parent.0.len() + 1 && path.starts_with(&parent));
        below.filter_map(|(path, place)| Some((path.0.last()?.clone(), place.clone()))).collect()
    }
}

/// The names that lead to a single setting.
fn pair_names(layer: &LayerName, key: &str) -> Vec<String> {
    let dotted = match layer {
        LayerName::Environment => key.strip_prefix(ENVIRONMENT_PREFIX).unwrap_or(key).replace("__", "."),
        _ => key.to_owned(),
    };
    dotted.split('.').map(|name| name.trim().to_owned()).collect()
}

/// The value of a single setting: TOML if it reads as TOML, and a string if not. Where the key asks for a text, a
/// number or a date is one too: nobody quotes `PORT=8080`.
fn pair_value<'a>(found: &Found, text: &'a str) -> Spanned<DeValue<'a>> {
    let wants_text = matches!(found, Found::Key(key) if key.shape.is_text());
    let as_text = || Spanned::new(0..text.len(), DeValue::String(text.into()));
    match DeValue::parse(text) {
        Ok(value) => match value.get_ref() {
            DeValue::String(_) | DeValue::Array(_) | DeValue::Table(_) => value,
            _ if wants_text => as_text(),
            _ => value,
        },
        Err(_) => as_text(),
    }
}
