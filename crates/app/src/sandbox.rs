//! The sandbox of this machine as people meet it: what goals reach with it, why it is not more, and what to do about that.

use towline_core::{Sandbox, SandboxMode, SandboxSettings};
use towline_engine::{Hindrance, NoSandbox, Obstacle, machine};

use crate::context::Context;
use crate::error::Error;
use crate::notice::Notice;

/// What confines the programs of goals with these settings on this machine.
pub fn sandbox_of(context: &Context, settings: &SandboxSettings) -> Option<Sandbox> {
    match settings.mode {
        SandboxMode::Off => None,
        SandboxMode::Auto | SandboxMode::Required => {
            machine(&context.program).ok().map(|machine| machine.sandbox())
        }
    }
}

/// Fails if these settings insist on a sandbox, and none works.
pub(crate) fn must_be_there(context: &Context, settings: &SandboxSettings) -> Result<(), Error> {
    if settings.mode != SandboxMode::Required {
        return Ok(());
    }
    machine(&context.program).map(drop).map_err(|reason| {
        let what = format!("`mode = \"required\"` in [sandbox], and none works here: {reason}");
        Error::usage(what).hint(fix_of_none(&reason))
    })
}

/// The notice that goals of this machine do not reach the level of trust that a sandbox of namespaces gives. Those who turned it off
/// know.
pub(crate) fn notice(context: &Context, settings: &SandboxSettings) -> Option<Notice> {
    if settings.mode == SandboxMode::Off {
        return None;
    }
    match machine(&context.program) {
        Err(reason) => Some(Notice::NoSandbox(reason.to_string())),
        Ok(machine) => {
            machine.instead_of().map(|obstacle| Notice::WeakSandbox(machine.sandbox(), obstacle.to_string()))
        }
    }
}

/// What to do where no sandbox works.
pub(crate) fn fix_of_none(reason: &NoSandbox) -> String {
    fix(&reason.bubblewrap, Hindrance::look())
}

/// What to do so that bubblewrap works.
pub(crate) fn fix(obstacle: &Obstacle, hindrance: Option<Hindrance>) -> String {
    let set =
        |setting: &str| format!("as root: `sysctl -w {setting}`; a file in /etc/sysctl.d makes it last");
    match (obstacle, hindrance) {
        (Obstacle::NotInstalled, _) => {
            "install it: `apt install bubblewrap` or `dnf install bubblewrap`".to_owned()
        }
        (Obstacle::OtherSystem, _) => "use Linux; elsewhere `mode = \"off\"` in [sandbox]".to_owned(),
        (_, Some(Hindrance::Clone)) => set("kernel.unprivileged_userns_clone=1"),
        (_, Some(Hindrance::Count)) => set("user.max_user_namespaces=15000"),
        (_, Some(Hindrance::AppArmor)) => format!(
            "allow bubblewrap in AppArmor, as root: `printf '{PROFILE}' > /etc/apparmor.d/bwrap && \
             apparmor_parser -r /etc/apparmor.d/bwrap`"
        ),
        (_, None) => {
            "allow user namespaces; in a container: `--security-opt seccomp=unconfined --security-opt \
                      apparmor=unconfined --security-opt systempaths=unconfined`"
                .to_owned()
        }
    }
}

/// The profile that Ubuntu 24.04 needs, as an argument of `printf`.
const PROFILE: &str = "abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile bwrap /usr/bin/bwrap flags=(unconfined) {\\n  \
                       userns,\\n  include if exists <local/bwrap>\\n}\\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_obstacle_has_the_fix_that_removes_it() {
        let forbidden = || Obstacle::Forbidden { complaint: "no".to_owned() };
        let shown = |obstacle: Obstacle, hindrance| fix(&obstacle, hindrance);
        assert!(shown(Obstacle::NotInstalled, Some(Hindrance::Count)).contains("apt install bubblewrap"));
        assert!(shown(forbidden(), Some(Hindrance::Clone)).contains("kernel.unprivileged_userns_clone=1"));
        assert!(shown(forbidden(), Some(Hindrance::Count)).contains("user.max_user_namespaces=15000"));
        let profile = shown(forbidden(), Some(Hindrance::AppArmor));
        assert!(
            profile.contains("profile bwrap /usr/bin/bwrap flags=(unconfined) {\\n  userns,\\n"),
            "{profile}"
        );
        assert!(profile.contains("apparmor_parser -r /etc/apparmor.d/bwrap"), "{profile}");
        assert!(shown(forbidden(), None).contains("container"));
    }
}
