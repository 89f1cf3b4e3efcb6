//! Why a sandbox does not work, as far as the machine shows it.

use std::path::Path;

/// Why this machine has no sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bubblewrap: {bubblewrap}; Landlock: {landlock}")]
pub struct NoSandbox {
    /// Why not one of bubblewrap.
    pub bubblewrap: Obstacle,
    /// Why not one of Landlock.
    pub landlock: Obstacle,
}

/// Why one kind of sandbox does not work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// bubblewrap is missing.
    #[error("`bwrap` is not installed")]
    NotInstalled,
    /// The means are there and cannot make a sandbox.
    #[error("it cannot make a sandbox on this machine: {complaint}")]
    Forbidden { complaint: String },
    /// The kernel has no Landlock, or it is turned off.
    #[error(
        "the kernel has none that can be used (Linux 5.19 or newer, with `landlock` in its list of security modules)"
    )]
    NoLandlock,
    /// Another system.
    #[error("there is no sandbox on this system")]
    OtherSystem,
}

/// What forbids user namespaces, which bubblewrap needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    /// `kernel.unprivileged_userns_clone` is 0, a setting of Debian's kernels.
    Clone,
    /// `user.max_user_namespaces` is 0.
    Count,
    /// `kernel.apparmor_restrict_unprivileged_userns` is 1, as in Ubuntu 24.04.
    AppArmor,
}

impl Hindrance {
    /// What the settings of this kernel show.
    pub fn look() -> Option<Self> {
        Self::look_in(Path::new("/proc/sys"))
    }

    fn look_in(settings: &Path) -> Option<Self> {
        let is = |name: &str, value: &str| {
            std::fs::read_to_string(settings.join(name)).is_ok_and(|text| text.trim() == value)
        };
        if is("kernel/unprivileged_userns_clone", "0") {
            Some(Self::Clone)
        } else if is("user/max_user_namespaces", "0") {
            Some(Self::Count)
        } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
            Some(Self::AppArmor)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_forbids_user_namespaces_is_read_from_the_settings_of_the_kernel() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        for folder in ["kernel", "user"] {
            std::fs::create_dir(scratch.path().join(folder)).expect("a folder");
        }
        let set = |name: &str, value: &str| {
            std::fs::write(scratch.path().join(name), format!("{value}\n")).expect("written");
            Hindrance::look_in(scratch.path())
        };
        assert_eq!(set("user/max_user_namespaces", "96365"), None);
        assert_eq!(set("kernel/apparmor_restrict_unprivileged_userns", "1"), Some(Hindrance::AppArmor));
        assert_eq!(set("user/max_user_namespaces", "0"), Some(Hindrance::Count));
        assert_eq!(set("kernel/unprivileged_userns_clone", "0"), Some(Hindrance::Clone));
    }
}
