//! The section `[sandbox]`.

use std::path::PathBuf;

use towline_core::{Network, SandboxMode, SandboxSettings};

use crate::settings::Settings;

pub(crate) fn read(settings: &Settings) -> SandboxSettings {
    let usual = SandboxSettings::default();
    let mode: Option<String> = settings.get(&["sandbox", "mode"]);
    let network = |key: &str, usual: Network| match settings.get(&["sandbox", key]) {
        Some(true) => Network::Open,
        Some(false) => Network::Closed,
        None => usual,
    };
    let paths = |key: &str| -> Vec<PathBuf> {
        let paths: Vec<String> = settings.get(&["sandbox", key]).unwrap_or_default();
        paths.into_iter().map(PathBuf::from).collect()
    };
    SandboxSettings {
        mode: match mode.as_deref() {
            Some("auto") => SandboxMode::Auto,
            Some("required") => SandboxMode::Required,
            Some("off") => SandboxMode::Off,
            _ => usual.mode,
        },
        network: network("network", usual.network),
        setup_network: network("setup_network", usual.setup_network),
        checks_network: network("checks_network", usual.checks_network),
        read: paths("read"),
        write: paths("write"),
        hide: paths("hide"),
    }
}
