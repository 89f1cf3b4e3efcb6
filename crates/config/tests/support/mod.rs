//! Layers for the tests.

#![expect(dead_code, reason = "each test binary uses its own part")]

use towline_config::{ConfigError, Layer, LayerContent, LayerName, Loaded, Place, Position, load};

/// The path of the repository's file in messages.
pub(crate) const FILE: &str = "/repo/towline.toml";

pub(crate) fn user(text: &str) -> Layer {
    Layer { name: LayerName::User("/home/config.toml".into()), content: LayerContent::Toml(text.to_owned()) }
}

pub(crate) fn repository(text: &str) -> Layer {
    Layer { name: repository_name(), content: LayerContent::Toml(text.to_owned()) }
}

pub(crate) fn repository_name() -> LayerName {
    LayerName::Repository(FILE.into())
}

pub(crate) fn environment(pairs: &[(&str, &str)]) -> Layer {
    Layer::environment(owned(pairs))
}

pub(crate) fn flags(pairs: &[(&str, &str)]) -> Layer {
    Layer { name: LayerName::Flags, content: LayerContent::Pairs(owned(pairs)) }
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

pub(crate) fn at(line: usize, column: usize) -> Place {
    Place { layer: repository_name(), position: Some(Position { line, column }) }
}

/// The configuration of one repository file.
pub(crate) fn loaded(text: &str) -> Loaded {
    load(&[repository(text)]).unwrap_or_else(|error| panic!("{error}"))
}

/// What is wrong with one repository file.
pub(crate) fn error(text: &str) -> String {
    error_of(&[repository(text)])
}

pub(crate) fn error_of(layers: &[Layer]) -> String {
    load(layers).map_or_else(|error: ConfigError| error.to_string(), |loaded| panic!("no error: {loaded:#?}"))
}
