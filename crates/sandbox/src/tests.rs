//! What the rules of a room are, and the mount points that they need.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use towline_core::{Network, Sandbox};

use crate::bubblewrap::{Tools, name_of, wrapper};
use crate::private::Private;
use crate::room::{PrivatePath, Room, Rule, Signals};

/// A user with a home that is no temporary directory, and a room in it.
struct Scene {
    dir: tempfile::TempDir,
    room: Room,
}

impl Scene {
    fn new() -> Self {
        // Below the target folder, because rooms have another directory for temporary files.
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
        fs::create_dir_all(&here).expect("a target folder");
        let dir = tempfile::tempdir_in(here.canonicalize().expect("there")).expect("a scratch directory");
        for made in ["home/.npm", "home/.cargo", "home/.nvm", "data", "work", "repository/.git", "private"] {
            fs::create_dir_all(dir.path().join(made)).expect("a directory");
        }
        fs::write(dir.path().join("home/.cargo/credentials.toml"), "secret").expect("written");
        let path = |name: &str| dir.path().join(name);
        let variable =
            |name: &str, value: &str| (name.to_owned(), dir.path().join(value).display().to_string());
        let room = Room {
            private: Private::make(&path("private")).expect("private directories"),
            directory: path("work"),
            environment: BTreeMap::from([variable("HOME", "home"), variable("XDG_DATA_HOME", "data")]),
            users_home: Some(path("home")),
            own: vec![path("home/.agent"), path("elsewhere")],
            filled: None,
            fills_caches: false,
            read: vec![path("repository/.git"), path("home/notes"), path("missing")],
            write: vec![path("work")],
            hide: vec![path("repository")],
            network: Network::Closed,
            signals: Signals::AreForTheProgram,
        };
        fs::write(path("home/notes"), "notes").expect("written");
        Self { dir, room }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn rule(&self, name: &str) -> Option<Rule> {
        self.room.rules().remove(&self.path(name))
    }
}

#[test]
fn the_home_and_directories_beside_it_are_private_and_sockets_are_hidden() {
    let scene = Scene::new();
    let private = scene.room.private.root().to_owned();
    assert_eq!(scene.rule("home"), Some(Rule::Write(private.join("home"))));
    let Some(Rule::Write(data)) = scene.rule("data") else { panic!("the data of the home") };
    assert!(data.starts_with(private.join("own")), "{data:?}");
    let rules = scene.room.rules();
    assert_eq!(rules.get(Path::new("/run")), Some(&Rule::Hidden));
    assert_eq!(rules.get(Path::new("/tmp")), Some(&Rule::Write(private.join("tmp"))));
    assert_eq!(scene.rule("home/.nvm"), Some(Rule::Read(scene.path("home/.nvm"))));
}

#[test]
fn caches_are_layered_and_hold_no_secrets() {
    let scene = Scene::new();
    assert_eq!(scene.rule("home/.npm"), Some(Rule::Layered(scene.path("home/.npm"))));
    assert_eq!(scene.rule("home/.cargo/credentials.toml"), Some(Rule::Hidden));
    let missing = scene.rule("home/.gradle/caches");
    assert_eq!(missing, Some(Rule::Layered(scene.room.private.empty())));
}

#[test]
fn a_cache_that_the_user_does_not_have_is_layered_only_if_something_is_kept_in_it() {
    let mut scene = Scene::new();
    let tools = Tools { bubblewrap: Path::new("bwrap"), towline: Path::new("/bin/towline"), can_layer: true };
    let layers = |room: &Room| {
        let words = wrapper(tools, room);
        let places = words.iter().zip(words.iter().skip(2)).filter(|(word, _)| *word == "--layer");
        places.map(|(_, place)| PathBuf::from(place)).collect::<Vec<_>>()
    };
    let is_durable = |room: &Room| wrapper(tools, room).iter().any(|word| word == "--durable");
    let users = ["home/.cargo", "home/.npm"].map(|name| scene.path(name));
    assert_eq!(layers(&scene.room), users);
    assert!(!is_durable(&scene.room));
    scene.room.fills_caches = true;
    assert!(layers(&scene.room).contains(&scene.path("home/.gradle/caches")));
    assert!(is_durable(&scene.room), "what is kept survives a crash");
    // What setup has left there is under what comes later.
    (scene.room.fills_caches, scene.room.filled) = (false, Some(scene.path("filled")));
    let name = name_of(&scene.path("home/.gradle/caches"));
    let upper = scene.path("filled").join(name).join("upper");
    fs::create_dir_all(&upper).expect("a directory");
    assert_eq!(layers(&scene.room), users, "setup has used it and left nothing");
    fs::write(upper.join("package"), "fetched").expect("written");
    assert!(layers(&scene.room).contains(&scene.path("home/.gradle/caches")));
    let elsewhere = scene.path("elsewhere");
    fs::rename(&upper, &elsewhere).expect("moved");
    symlink(&elsewhere, &upper).expect("a symlink");
    assert_eq!(layers(&scene.room), users, "a symlink may lead anywhere");
}

#[test]
fn each_layer_has_a_name_of_its_own_without_the_separators_of_mount_options() {
    let names = ["/a/foo-bar", "/a/foobar", "/a/foo/bar", "/a/foo:bar", "/a/föö,bar"]
        .map(|place| name_of(Path::new(place)));
    let different: BTreeSet<_> = names.iter().collect();
    assert_eq!(different.len(), names.len(), "{names:?}");
    assert!(names.iter().all(|name| !name.contains([',', ':', '\\', '/'])), "{names:?}");
}

#[test]
fn what_has_its_own_rule_below_a_cache_is_mounted_after_its_layer() {
    let mut scene = Scene::new();
    let [hidden, changed] = ["home/.cargo/hidden", "home/.cargo/project"].map(|name| scene.path(name));
    for folder in [&hidden, &changed] {
        fs::create_dir_all(folder).expect("a directory");
    }
    scene.room.hide.push(hidden.clone());
    scene.room.write.push(changed.clone());
    let tools = Tools { bubblewrap: Path::new("bwrap"), towline: Path::new("/bin/towline"), can_layer: true };
    let words = wrapper(tools, &scene.room);
    let layers = words.iter().position(|word| word == "--layer").expect("a layer");
    let (outside, inside) = words.split_at(layers);
    let [hidden, changed] = [hidden, changed].map(|path| path.display().to_string());
    assert!(!outside.contains(&hidden), "{outside:?}");
    assert!(inside.windows(2).any(|pair| pair[0] == "--hide" && pair[1] == hidden), "{inside:?}");
    assert!(inside.windows(3).any(|words| words[0] == "--bind" && words[2] == changed), "{inside:?}");
}

#[test]
fn what_a_program_sees_anyway_has_no_mount_of_its_own() {
    let mut scene = Scene::new();
    fs::create_dir_all(scene.path("repository/.git/objects")).expect("a directory");
    let (objects, git) = (scene.path("repository/.git/objects"), scene.path("repository/.git"));
    let devices = ["/usr/bin", "/dev/null", "/proc/version"].map(PathBuf::from);
    scene.room.read.extend([objects.clone()].into_iter().chain(devices.clone()));
    let tools = Tools { bubblewrap: Path::new("bwrap"), towline: Path::new("/bin/towline"), can_layer: true };
    let words = wrapper(tools, &scene.room);
    let is_mounted =
        |path: &Path| words.windows(3).any(|words| words[0] == "--ro-bind" && Path::new(&words[2]) == path);
    let [programs, device, process] = devices;
    assert!(!is_mounted(&programs) && !is_mounted(&objects), "{words:?}");
    assert!(is_mounted(&git) && is_mounted(&device) && is_mounted(&process), "{words:?}");
}

#[test]
fn what_is_hidden_can_have_parts_to_read_and_what_is_missing_has_no_rule() {
    let mut scene = Scene::new();
    assert_eq!(scene.rule("repository"), Some(Rule::Hidden));
    assert_eq!(scene.rule("repository/.git"), Some(Rule::Read(scene.path("repository/.git"))));
    assert_eq!(scene.rule("missing"), None);
    let hidden = scene.path("home/.nvm");
    scene.room.hide.push(hidden);
    assert_eq!(scene.rule("home/.nvm"), Some(Rule::Hidden), "a setting counts more than a tool");
}

#[test]
fn a_directory_of_its_own_in_a_hidden_place_of_the_home_is_no_part_of_that() {
    let mut scene = Scene::new();
    let sessions = scene.path("home/.state/sessions");
    fs::create_dir_all(&sessions).expect("a directory");
    scene.room.hide.push(scene.path("home/.state"));
    scene.room.own.push(sessions);
    assert_eq!(scene.rule("home/.state"), Some(Rule::Hidden));
    let Some(Rule::Write(own)) = scene.rule("home/.state/sessions") else { panic!("its own") };
    assert!(own.starts_with(scene.room.private.root()), "{own:?}");
}

#[test]
fn a_private_file_is_found_from_outside_and_no_other() {
    let scene = Scene::new();
    let private = scene.room.private.root().to_owned();
    let found = scene.room.outside(&scene.path("home/.agent/auth.json"));
    let expected = PrivatePath { root: private.join("home"), inner: ".agent/auth.json".into() };
    assert_eq!(found, Some(expected));
    assert_eq!(scene.room.outside(&scene.path("work/auth.json")), None);
    assert_eq!(scene.room.outside(&scene.path("repository/.git/config")), None);
}

#[test]
fn a_mount_point_never_leads_through_what_a_program_left() {
    let scene = Scene::new();
    let outside = scene.path("outside");
    fs::create_dir(&outside).expect("a directory");
    let private = scene.room.private.root().join("home");
    symlink(&outside, private.join(".nvm")).expect("a symlink");
    symlink(outside.join("file"), private.join("notes")).expect("a symlink");
    scene.room.prepare(Sandbox::Bubblewrap).expect("prepared");
    let kind = |name: &str| fs::symlink_metadata(private.join(name)).expect("there").file_type();
    assert!(kind(".nvm").is_dir() && kind("notes").is_file());
    assert_eq!(fs::read_dir(&outside).expect("a directory").count(), 0);
}

#[test]
fn a_symlink_in_the_workspace_opens_nothing() {
    let mut scene = Scene::new();
    fs::create_dir(scene.path("outside")).expect("a directory");
    fs::write(scene.path("outside/secret"), "").expect("written");
    symlink(scene.path("outside"), scene.path("work/inner")).expect("a symlink");
    symlink(scene.path("outside/secret"), scene.path("work/tool")).expect("a symlink");
    let planted = ["work/inner/secret", "work/inner", "work/tool"].map(|name| scene.path(name));
    let before = scene.room.rules();
    scene.room.read.extend(planted.clone());
    scene.room.write.extend(planted);
    assert_eq!(scene.room.rules(), before);
}

#[test]
fn a_symlink_that_the_program_sees_is_left_as_it_is() {
    let mut scene = Scene::new();
    fs::create_dir_all(scene.path("home/bin")).expect("a directory");
    symlink(scene.path("home/notes"), scene.path("home/bin/tool")).expect("a symlink");
    symlink(scene.path("home/notes"), scene.path("home/alone")).expect("a symlink");
    scene
        .room
        .read
        .extend(["home/bin", "home/bin/tool", "home/alone"].map(|name| scene.dir.path().join(name)));
    assert_eq!(scene.rule("home/bin/tool"), None, "it is in a directory that can be read");
    assert_eq!(
        scene.rule("home/alone"),
        Some(Rule::Read(scene.path("home/alone"))),
        "the private home has none"
    );
}

#[test]
fn no_variable_opens_the_home_or_what_is_above_it() {
    let mut scene = Scene::new();
    let home = scene.path("home");
    fs::create_dir_all(home.join("shims")).expect("a directory");
    let text = home.display().to_string();
    scene.room.environment.insert("PATH".to_owned(), format!("{text}/shims:{text}/x/../bin"));
    for variable in ["JAVA_HOME", "CARGO_HOME", "PYENV_ROOT"] {
        scene.room.environment.insert(variable.to_owned(), text.clone());
    }
    let rules = scene.room.rules();
    let opens_home =
        |rule: &Rule| matches!(rule, Rule::Read(from) | Rule::Layered(from) if home.starts_with(from));
    assert!(!rules.values().any(opens_home), "{rules:?}");
    assert!(
        !rules.keys().any(|path| path.components().any(|part| part == std::path::Component::ParentDir)),
        "{rules:?}"
    );
}
