//! The server as a service of the user's systemd session: the unit, where it goes, and what it lacks.

use std::path::PathBuf;

use towline_agent::is_agents_variable;

use crate::context::Context;
use crate::error::Error;

/// The name of the unit.
pub const UNIT: &str = "towline.service";

/// Variables that decide where Towline stores and finds things.
const PLACES: [&str; 3] = ["TOWLINE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"];

/// The longest file with variables.
const LONGEST: u64 = 64 * 1024;

impl Context {
    /// The file with the credentials of the server: one `NAME=VALUE` on each line.
    pub fn environment_file(&self) -> Option<PathBuf> {
        Some(self.user_directory("XDG_CONFIG_HOME", ".config")?.join("env"))
    }
}

/// The variables in a file of the server; none if there is no such file.
pub(crate) fn read_variables(path: &std::path::Path) -> Result<Option<Vec<(String, String)>>, Error> {
    use std::os::unix::fs::PermissionsExt;
    let unreadable = |error| Error::usage(format!("cannot read {}: {error}", path.display()));
    let about = match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        about => about.map_err(unreadable)?,
    };
    if about.permissions().mode() & 0o077 != 0 {
        let what = format!("{} holds credentials, and others can read it", path.display());
        return Err(Error::usage(what).hint(format!("run: chmod 600 {}", path.display())));
    }
    let bytes = towline_files::read_following(path, LONGEST).map_err(unreadable)?;
    let text =
        String::from_utf8(bytes).map_err(|_| Error::usage(format!("{} is not text", path.display())))?;
    let mut variables = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((name, value)) = line.split_once('=') else {
            let what = format!("{}:{}: a line must be NAME=VALUE", path.display(), number + 1);
            return Err(Error::usage(what));
        };
        variables.push((name.trim().to_owned(), unquoted(value.trim()).to_owned()));
    }
    Ok(Some(variables))
}

fn unquoted(value: &str) -> &str {
    let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    quoted.unwrap_or(value)
}

/// The unit that runs the server.
pub fn unit(context: &Context) -> String {
    let program = escaped(&context.program.display().to_string());
    // The service does not start in this directory.
    let place = |name: &&str| {
        let path = context.directory.join(context.variable(name)?);
        Some(format!("Environment=\"{name}={}\"\n", escaped(&path.display().to_string())))
    };
    let places = PLACES.iter().filter_map(place);
    let places: String = places.collect();
    // Supervisors outlive a restart of the server, and SIGTERM is how the server is asked to end.
    format!(
        "[Unit]\n\
         Description=Towline: takes coding agents to done, and proves it\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart=\"{program}\" up\n\
         {places}\
         KillMode=process\n\
         SuccessExitStatus=143\n\
         TimeoutStopSec=90\n\
         Restart=on-failure\n\
         RestartSec=5\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n"
    )
}

/// A value between quotes, as systemd reads it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('\n', "\\n")
}

/// Where the unit goes.
pub fn unit_path(context: &Context) -> Result<PathBuf, Error> {
    let configuration = match context.variable("XDG_CONFIG_HOME") {
        Some(directory) => PathBuf::from(directory),
        None => {
            let home = context.variable("HOME").ok_or_else(|| Error::usage("HOME is not set"))?;
            PathBuf::from(home).join(".config")
        }
    };
    Ok(configuration.join("systemd/user").join(UNIT))
}

/// Credentials that this shell has and the service would start without.
pub fn credentials_of_shell(context: &Context) -> Result<Vec<String>, Error> {
    let stored = match context.environment_file() {
        Some(path) => read_variables(&path)?.unwrap_or_default(),
        None => Vec::new(),
    };
    let is_stored = |name: &String| stored.iter().any(|(stored, _)| stored == name);
    let is_credential = |name: &&String| {
        is_agents_variable(name) && ["KEY", "TOKEN", "SECRET"].iter().any(|word| name.contains(word))
    };
    let names = context.environment.keys().filter(is_credential).filter(|name| !is_stored(name));
    Ok(names.cloned().collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn context(variables: &[(&str, &str)]) -> Context {
        let environment: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Context::new(environment, "/project".into(), "/opt/100% \"mine\"/towline".into())
    }

    #[test]
    fn the_unit_names_this_program_and_its_places_and_leaves_supervisors_alone() {
        let unit = unit(&context(&[("TOWLINE_HOME", "/state of mine"), ("SECRET", "x")]));
        assert!(unit.contains("ExecStart=\"/opt/100%% \\\"mine\\\"/towline\" up\n"), "{unit}");
        assert!(unit.contains("Environment=\"TOWLINE_HOME=/state of mine\"\n"), "{unit}");
        assert!(unit.contains("KillMode=process\nSuccessExitStatus=143\n"), "{unit}");
        assert!(!unit.contains("SECRET"), "{unit}");
    }

    #[test]
    fn the_places_in_the_unit_do_not_depend_on_where_the_service_starts() {
        let unit = unit(&context(&[("TOWLINE_HOME", "state"), ("XDG_CONFIG_HOME", "../config")]));
        assert!(unit.contains("Environment=\"TOWLINE_HOME=/project/state\"\n"), "{unit}");
        assert!(unit.contains("Environment=\"XDG_CONFIG_HOME=/project/../config\"\n"), "{unit}");
    }

    #[test]
    fn credentials_come_from_a_file_that_only_its_owner_can_read() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a scratch directory");
        let home = dir.path().display().to_string();
        let file = dir.path().join(".config/towline/env");
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("made");
        std::fs::write(&file, "# keys\nANTHROPIC_API_KEY=\"dummy-1\"\nOPENAI_API_KEY=dummy-2\n")
            .expect("written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("set");
        let shell = context(&[("HOME", &home), ("OPENAI_API_KEY", "mine"), ("GEMINI_API_KEY", "dummy-3")]);
        let refused = shell.for_server().err().expect("others can read it").to_string();
        assert!(refused.contains("others can read it"), "{refused}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("set");
        let server = shell.for_server().expect("a context");
        assert_eq!(server.variable("ANTHROPIC_API_KEY"), Some("dummy-1"));
        assert_eq!(server.variable("OPENAI_API_KEY"), Some("mine"), "the environment wins");
        assert_eq!(credentials_of_shell(&shell).expect("names"), ["GEMINI_API_KEY"]);
        std::fs::write(&file, "no equals sign\n").expect("written");
        let refused = shell.for_server().err().expect("a bad line").to_string();
        assert!(refused.contains("env:1: a line must be NAME=VALUE"), "{refused}");
    }
}
