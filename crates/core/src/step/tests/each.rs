//! Samples of every variant of an enum, for tables that must not miss one.

/// Lists samples beside each variant, so that a new variant does not compile until it has one, and the table does
/// not hold until somebody has decided what it means.
macro_rules! some_of_each {
    ($name:ident: $sample:ty, by $kind:ident of $kind_of:expr => { $($variant:pat => $($made:expr),+;)+ }) => {
        fn $name() -> Vec<$sample> {
            fn covers_every_variant(kind: &$kind) {
                match kind { $($variant => {})+ }
            }
            let samples: Vec<$sample> = vec![$($({
                let sample: $sample = $made;
                let kind_of: fn(&$sample) -> &$kind = $kind_of;
                let kind = kind_of(&sample);
                covers_every_variant(kind);
                assert!(matches!(kind, $variant), "listed under the wrong name: {kind:?}");
                sample
            }),+),+];
            samples
        }
    };
}

pub(super) use some_of_each;
