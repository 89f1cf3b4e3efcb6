//! Compresses the files of the page, so that the program has them ready for browsers.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

const PAGE: &str = "../../web/dist";
/// Smaller files are not worth it.
const SMALLEST: usize = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PAGE}");
    let out = std::env::var("OUT_DIR")?;
    let mut list = String::from("&[");
    for entry in fs::read_dir(format!("{PAGE}/assets"))? {
        let name =
            entry?.file_name().into_string().map_err(|name| format!("{} is no text", name.display()))?;
        let bytes = fs::read(format!("{PAGE}/assets/{name}"))?;
        if bytes.len() < SMALLEST {
            continue;
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bytes)?;
        let path = Path::new(&out).join(format!("{name}.gz"));
        fs::write(&path, encoder.finish()?)?;
        write!(list, "({:?}, include_bytes!({:?})),", format!("/assets/{name}"), path.display().to_string())?;
    }
    list.push(']');
    fs::write(Path::new(&out).join("compressed.rs"), list)?;
    Ok(())
}
