//! What decides whether checks pass, for each ecosystem: the paths and sections that `init` protects.
//!
//! Plain data. docs/configuration.md gives the reason for each of them, and a test holds that every one is there. A file that does not
//! exist is listed as well where adding it would change what the checks find.

use std::collections::BTreeSet;

use super::plan::Protection;
use super::python;
use super::tree::{Tree, join};

/// What shows that an ecosystem is used in a folder.
enum Sign {
    /// A file in the folder.
    File(&'static str),
    /// A word in a file of the folder.
    Word(&'static str, &'static str),
    /// The folder is tested by pytest.
    Pytest,
}

/// The protected paths of one ecosystem.
struct Preset {
    name: &'static str,
    signs: &'static [Sign],
    /// Once, wherever the ecosystem is used.
    anywhere: &'static [&'static str],
    /// In each folder that uses it.
    in_folder: &'static [&'static str],
}

const PRESETS: &[Preset] = &[
    Preset {
        name: "cargo",
        signs: &[Sign::File("Cargo.toml")],
        anywhere: &[
            "**/.cargo/**",
            "**/rust-toolchain",
            "**/rust-toolchain.toml",
            "**/.config/nextest.toml",
            "**/.config/insta.yaml",
            "**/insta.yaml",
            "**/.insta.yaml",
            "**/*.snap",
            "**/proptest-regressions/**",
        ],
        in_folder: &[
            "build.rs",
            "target/**",
            "Cargo.toml#profile",
            "Cargo.toml#lib",
            "Cargo.toml#bin",
            "Cargo.toml#test",
            "Cargo.toml#package.autotests",
            "Cargo.toml#package.autobins",
            "Cargo.toml#package.build",
            "Cargo.toml#patch",
            "Cargo.toml#replace",
            "Cargo.toml#workspace.members",
            "Cargo.toml#workspace.exclude",
            "Cargo.toml#workspace.default-members",
        ],
    },
    Preset {
        name: "node",
        signs: &[Sign::File("package.json")],
        anywhere: &[
            "**/*.test.*",
            "**/*.spec.*",
            "**/__tests__/**",
            "**/__mocks__/**",
            "**/__snapshots__/**",
            "**/node_modules/**",
            "**/.babelrc*",
            "**/babel.config.*",
            "**/.swcrc",
            "**/.npmrc",
            "**/.yarnrc*",
            "**/.yarn/**",
            "**/.pnp.*",
            "**/.pnpmfile.*",
            "**/bunfig.toml",
            "**/.c8rc*",
            "**/.nycrc*",
            "**/.nvmrc",
            "**/.node-version",
        ],
        in_folder: &[
            "package.json#scripts",
            "package.json#babel",
            "package.json#c8",
            "package.json#nyc",
            "package.json#overrides",
            "package.json#resolutions",
            "package.json#pnpm",
            "package.json#packageManager",
            "pnpm-workspace.yaml",
        ],
    },
    Preset {
        name: "jest",
        signs: &[Sign::Word("package.json", "jest")],
        anywhere: &["**/jest.config.*", "**/jest.setup.*", "**/.watchmanconfig"],
        in_folder: &[
            "package.json#jest",
            "package.json#dependencies.jest",
            "package.json#devDependencies.jest",
            "package-lock.json#packages.node_modules/jest",
        ],
    },
    Preset {
        name: "vitest",
        signs: &[Sign::Word("package.json", "vitest")],
        anywhere: &["**/vitest.config.*", "**/vitest.workspace.*", "**/vitest.setup.*", "**/vite.config.*"],
        in_folder: &[
            "package.json#dependencies.vitest",
            "package.json#devDependencies.vitest",
            "package-lock.json#packages.node_modules/vitest",
        ],
    },
    Preset {
        name: "mocha",
        signs: &[Sign::Word("package.json", "mocha")],
        anywhere: &["**/.mocharc*"],
        in_folder: &[
            "package.json#mocha",
            "package.json#dependencies.mocha",
            "package.json#devDependencies.mocha",
            "package-lock.json#packages.node_modules/mocha",
        ],
    },
    Preset {
        name: "pytest",
        signs: &[Sign::Pytest],
        anywhere: &[
            "**/test_*.py",
            "**/*_test.py",
            "**/conftest.py",
            "**/pytest.ini",
            "**/.pytest.ini",
            "**/pytest.toml",
            "**/.pytest.toml",
            "**/tox.ini",
            "**/tox.toml",
            "**/noxfile.py",
            "**/sitecustomize.py",
            "**/usercustomize.py",
            "**/*.pth",
            "**/*.pyc",
            "**/*.dist-info/**",
            "**/*.egg-info/**",
            "**/pyvenv.cfg",
            "**/conda-meta/**",
            "**/site-packages/**",
            "**/__snapshots__/**",
            "**/.coveragerc",
            "**/.python-version",
            "**/.python-versions",
            "**/uv.toml",
        ],
        in_folder: &[
            "pytest.*",
            "pytest/**",
            "_pytest/**",
            "pluggy.*",
            "pluggy/**",
            "src/pytest.*",
            "src/pytest/**",
            "src/_pytest/**",
            "pyproject.toml#tool.pytest",
            "pyproject.toml#tool.coverage",
            "pyproject.toml#tool.uv",
            "pyproject.toml#build-system",
            "pyproject.toml#project.entry-points",
            "setup.cfg#tool:pytest",
            "setup.cfg#options.entry_points",
        ],
    },
    Preset {
        name: "go",
        signs: &[Sign::File("go.mod")],
        anywhere: &[
            "**/*_test.go",
            "**/testdata/**",
            "**/go.work",
            "**/go.work.sum",
            "**/vendor/**",
            "**/go.mod#module",
            "**/go.mod#replace",
            "**/go.mod#exclude",
            "**/go.mod#ignore",
            "**/go.mod#toolchain",
            "**/go.mod#godebug",
        ],
        in_folder: &[],
    },
    Preset {
        name: "Maven",
        signs: &[Sign::File("pom.xml")],
        anywhere: &["**/src/test/**", "**/pom.xml", "**/.mvn/**", "**/mvnw"],
        in_folder: &[],
    },
    Preset {
        name: "Gradle",
        signs: &[
            Sign::File("settings.gradle"),
            Sign::File("settings.gradle.kts"),
            Sign::File("build.gradle"),
            Sign::File("build.gradle.kts"),
        ],
        anywhere: &[
            "**/src/test/**",
            "**/*.gradle",
            "**/*.gradle.kts",
            "**/gradle.properties",
            "**/gradle/**",
            "**/gradlew",
        ],
        in_folder: &[],
    },
    Preset {
        name: "just",
        signs: &[Sign::File("justfile"), Sign::File("Justfile"), Sign::File(".justfile")],
        anywhere: &["**/Justfile"],
        in_folder: &[],
    },
    Preset {
        name: "make",
        signs: &[Sign::File("Makefile"), Sign::File("makefile"), Sign::File("GNUmakefile")],
        anywhere: &["**/*.mk"],
        in_folder: &["GNUmakefile", "makefile", "Makefile"],
    },
    Preset {
        name: "submodules",
        signs: &[Sign::File(".gitmodules")],
        anywhere: &[".gitmodules"],
        in_folder: &[],
    },
];

/// What steers tools in every project.
const EVERYWHERE: &[&str] = &[
    "**/.env",
    "**/.envrc",
    "**/.tool-versions",
    "**/mise.toml",
    "**/.mise.toml",
    "**/justfile",
    "**/.justfile",
    ".githooks/**",
    ".husky/**",
];

/// Files and folders of continuous integration. Those that the project has are protected.
const CI: &[&str] = &[
    ".github/**",
    ".gitlab-ci.yml",
    ".gitlab/**",
    ".circleci/**",
    ".buildkite/**",
    ".drone.yml",
    ".travis.yml",
    ".woodpecker/**",
    "Jenkinsfile",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
];

/// Whether `init` may have written this pattern.
pub(crate) fn is_preset(pattern: &str) -> bool {
    let is_below = |path: &str| {
        pattern.strip_suffix(path).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
    };
    PRESETS.iter().any(|preset| {
        preset.anywhere.contains(&pattern) || preset.in_folder.iter().any(|path| is_below(path))
    }) || EVERYWHERE.contains(&pattern)
        || CI.contains(&pattern)
}

/// What is to be protected in a project with these folders, besides its folders with tests.
pub(super) fn protections(tree: &Tree, folders: &[String]) -> Vec<Protection> {
    let mut all: Vec<Protection> =
        PRESETS.iter().filter_map(|preset| preset.applied(tree, folders)).collect();
    let has = |pattern: &str| match pattern.strip_suffix("/**") {
        Some(folder) => tree.below(folder).next().is_some(),
        None => tree.has("", pattern),
    };
    let ci: Vec<String> =
        CI.iter().filter(|pattern| has(pattern)).map(|&pattern| pattern.to_owned()).collect();
    let everywhere = EVERYWHERE.iter().map(|&pattern| pattern.to_owned()).collect();
    if !all.is_empty() {
        all.push(Protection { what: "tools", paths: everywhere });
    }
    if !ci.is_empty() {
        all.push(Protection { what: "CI", paths: ci });
    }
    let mut seen = BTreeSet::new();
    all.iter_mut().for_each(|part| part.paths.retain(|path| seen.insert(path.clone())));
    all
}

impl Preset {
    fn applied(&self, tree: &Tree, folders: &[String]) -> Option<Protection> {
        let is_used = |folder: &str| self.signs.iter().any(|sign| sign.is_in(tree, folder));
        let used: Vec<&String> = folders.iter().filter(|folder| is_used(folder)).collect();
        let in_folders = used
            .iter()
            .filter(|folder| can_be_in_pattern(folder))
            .flat_map(|folder| self.in_folder.iter().map(|path| join(folder, path)));
        let paths: Vec<String> =
            self.anywhere.iter().map(|&path| path.to_owned()).chain(in_folders).collect();
        (!used.is_empty()).then_some(Protection { what: self.name, paths })
    }
}

impl Sign {
    fn is_in(&self, tree: &Tree, folder: &str) -> bool {
        match self {
            Self::File(name) => tree.has(folder, name),
            Self::Word(name, word) => tree.text(folder, name).is_some_and(|text| text.contains(word)),
            Self::Pytest => python::uses_pytest(tree, folder),
        }
    }
}

/// Whether a folder's name means itself in a pattern.
pub(super) fn can_be_in_pattern(folder: &str) -> bool {
    !folder.contains(['*', '?', '[', '{', '\\', '#'])
}

#[cfg(test)]
mod tests {
    use towline_workspace::Protect;

    use super::*;

    fn all() -> impl Iterator<Item = &'static str> {
        let presets = PRESETS.iter().flat_map(|preset| preset.anywhere.iter().chain(preset.in_folder));
        presets.chain(EVERYWHERE).chain(CI).copied()
    }

    #[test]
    fn every_pattern_can_be_used_and_is_explained() {
        let patterns: Vec<String> = all().map(str::to_owned).collect();
        Protect::of(&patterns, &[]).unwrap();
        let page = include_str!("../../../../docs/configuration.md");
        let unexplained: Vec<&str> =
            all().filter(|pattern| !page.contains(&format!("`{pattern}`"))).collect();
        assert_eq!(unexplained, Vec::<&str>::new(), "docs/configuration.md does not explain these");
    }
}
