//! Looking at this process: its environment, its directory, its program. Everything below is given values.

use std::collections::BTreeMap;

use towline_app::{Context, Error};
use towline_engine::known_secrets;
use towline_terminal::Letters;

use crate::output;
use crate::upgrade::show_upgrade;

/// Has the secrets in this process's environment hidden from now on.
pub(crate) fn know_own_secrets() {
    towline_terminal::secrets().add(&known_secrets(&environment(), []));
}

fn environment() -> BTreeMap<String, String> {
    let text = |text: std::ffi::OsString| text.into_string().ok();
    std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect()
}

/// Looks at this process.
pub(crate) fn of_this_process() -> Result<Context, Error> {
    let directory = std::env::current_dir()
        .map_err(|error| Error::usage(format!("the current directory cannot be used: {error}")))?;
    let program = std::env::current_exe()
        .map_err(|error| Error::internal(format!("cannot find this program's own file: {error}")))?;
    let secrets = towline_terminal::secrets().clone();
    let context = Context { secrets, show_upgrade, ..Context::new(environment(), directory, program) };
    output::know_person(
        context.variable("HOME").unwrap_or_default(),
        Letters::of(|name| context.variable(name)),
    );
    Ok(context)
}
