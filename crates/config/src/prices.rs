//! `[prices.MODEL]`: what models cost, where the table of prices does not know or is not to count.

use std::collections::BTreeMap;

use towline_core::Price;

use crate::schema::KeyPath;
use crate::settings::Settings;

/// Reads them. A price that is not complete is reported to `settings`.
pub(crate) fn read(settings: &mut Settings) -> BTreeMap<String, Price> {
    let mut prices = BTreeMap::new();
    for (model, place) in settings.names_below(&["prices"]) {
        let dollars = |kind| settings.get(&["prices", &model, kind]);
        match (dollars("input"), dollars("output")) {
            (Some(input), Some(output)) => {
                let (cache_read, cache_write) = (dollars("cache_read"), dollars("cache_write"));
                prices.insert(model, Price { input, output, cache_read, cache_write, cache_write_1h: None });
            }
            _ => {
                let path = KeyPath::of(&["prices", &model]);
                let fix =
                    "set what a million tokens cost, such as `input = 1.25` and `output = 10`".to_owned();
                settings.report(format!("`{path}` lacks `input` or `output`"), place, fix);
            }
        }
    }
    prices
}
