//! The allowed edges between our crates: which may use which, outside their tests.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The longest chain of our crates, counted in crates.
const MAX_DEPTH: usize = 7;

/// Only tests may use it.
const TEST_ONLY: &str = "towline-testkit";

/// Each crate, and those of ours that it may use. A crate that is not listed may not exist.
const ALLOWED: &[(&str, &[&str])] = &[
    ("towline-core", &[]),
    ("towline-agent", &["towline-core"]),
    ("towline-config", &["towline-core", "towline-agent"]),
    ("towline-files", &[]),
    ("towline-mask", &[]),
    ("towline-process", &["towline-files"]),
    ("towline-sandbox", &["towline-core", "towline-files"]),
    ("towline-workspace", &["towline-core", "towline-files", "towline-mask"]),
    (
        "towline-check",
        &[
            "towline-core",
            "towline-files",
            "towline-mask",
            "towline-process",
            "towline-sandbox",
            "towline-workspace",
        ],
    ),
    ("towline-store", &["towline-core", "towline-files"]),
    (
        "towline-engine",
        &[
            "towline-core",
            "towline-agent",
            "towline-files",
            "towline-mask",
            "towline-process",
            "towline-sandbox",
            "towline-workspace",
            "towline-check",
            "towline-store",
        ],
    ),
    ("towline-api", &["towline-core", "towline-mask"]),
    // What a user can do, over values: it uses what is below and prints nothing.
    (
        "towline-app",
        &[
            "towline-agent",
            "towline-api",
            "towline-check",
            "towline-config",
            "towline-core",
            "towline-engine",
            "towline-files",
            "towline-mask",
            "towline-process",
            "towline-proof",
            "towline-store",
            "towline-workspace",
        ],
    ),
    // Values to lines of text: neither prints anything. Only what shows stored goals may know stores and the engine.
    ("towline-terminal", &["towline-api", "towline-core", "towline-mask"]),
    (
        "towline-view",
        &[
            "towline-agent",
            "towline-api",
            "towline-app",
            "towline-core",
            "towline-engine",
            "towline-store",
            "towline-terminal",
        ],
    ),
    // A client of the server like any other: it reaches goals over HTTP and in no other way.
    ("towline-watch", &["towline-api", "towline-core", "towline-terminal"]),
    (
        "towline-server",
        &[
            "towline-api",
            "towline-app",
            "towline-config",
            "towline-core",
            "towline-engine",
            "towline-files",
            "towline-mask",
            "towline-store",
        ],
    ),
    // Bytes in, values out: nothing that is signed follows from anything else of ours.
    ("towline-proof", &[]),
    ("towline-provider", &[]),
    (
        "towline-builtin",
        &["towline-core", "towline-agent", "towline-files", "towline-mask", "towline-provider"],
    ),
    // It puts the parts together, and the one binary is the supervisor as well: so it may name what the engine takes.
    (
        "towline-cli",
        &[
            "towline-api",
            "towline-app",
            "towline-server",
            "towline-terminal",
            "towline-view",
            "towline-watch",
            "towline-engine",
            "towline-files",
            "towline-mask",
            "towline-builtin",
            "towline-config",
            "towline-core",
            "towline-agent",
            "towline-check",
            "towline-process",
            "towline-sandbox",
            "towline-store",
            "towline-workspace",
        ],
    ),
    (TEST_ONLY, &[]),
    // No part of the product: nothing may use it.
    ("towline-fuzzing", &["towline-core", "towline-agent", "towline-process", "towline-config"]),
    ("xtask", &[]),
];

/// For each of our packages, those of ours that it uses outside its tests.
type Edges = BTreeMap<String, BTreeSet<String>>;

#[expect(clippy::disallowed_methods, reason = "cargo knows the edges, and this test asks it")]
fn metadata() -> Value {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        // Asked for now and not when compiled, since checkouts may share a target folder.
        .current_dir(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets the folder of the test"))
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

/// Ours are the dependencies by path.
fn edges(metadata: &Value) -> Edges {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let name = |value: &Value| value["name"].as_str().expect("packages have names").to_owned();
    let ours = |package: &Value| {
        let shipped = list(&package["dependencies"])
            .into_iter()
            .filter(|dependency| dependency["path"].is_string() && dependency["kind"] != "dev");
        shipped.map(|dependency| name(&dependency)).collect()
    };
    list(&metadata["packages"]).iter().map(|package| (name(package), ours(package))).collect()
}

/// Every edge that the table does not allow, and every crate that it does not list.
fn violations(edges: &Edges) -> Vec<String> {
    let mut found = Vec::new();
    for (package, uses) in edges {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| name == package) else {
            found.push(format!("{package} is not in the table"));
            continue;
        };
        let forbidden = uses.iter().filter(|used| !allowed.contains(&used.as_str()));
        found.extend(forbidden.map(|used| format!("{package} may not use {used}")));
    }
    found
}

/// The number of crates on the longest way down from `package`.
fn depth(edges: &Edges, package: &str) -> usize {
    1 + edges[package].iter().map(|used| depth(edges, used)).max().unwrap_or(0)
}

#[test]
fn crates_use_only_what_the_architecture_allows() {
    let edges = edges(&metadata());
    assert!(
        edges.contains_key("towline-core") && edges.contains_key("xtask"),
        "cargo lists our crates: {edges:?}"
    );
    assert_eq!(violations(&edges), Vec::<String>::new());
}

#[test]
fn no_chain_of_crates_is_too_long() {
    let edges = edges(&metadata());
    let deep: Vec<_> = edges
        .keys()
        .map(|package| (package, depth(&edges, package)))
        .filter(|(_, depth)| *depth > MAX_DEPTH)
        .collect();
    assert_eq!(deep, []);
}

#[test]
fn a_forbidden_edge_is_noticed_whatever_its_kind() {
    let dependency = |name: &str, kind: Value| serde_json::json!({"name": name, "kind": kind, "path": "/x"});
    let package = |name: &str, dependencies: Vec<Value>| serde_json::json!({"name": name, "dependencies": dependencies});
    let metadata = serde_json::json!({"packages": [
        package("towline-core", vec![dependency(TEST_ONLY, "dev".into())]),
        package("towline-agent", vec![dependency("towline-store", Value::Null)]),
        package("towline-store", vec![dependency(TEST_ONLY, "build".into())]),
        package("towline-new", vec![serde_json::json!({"name": "serde", "kind": null, "path": null})]),
    ]});
    assert_eq!(
        violations(&edges(&metadata)),
        [
            "towline-agent may not use towline-store",
            "towline-new is not in the table",
            "towline-store may not use towline-testkit",
        ]
    );
}
