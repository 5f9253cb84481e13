//! Prints one line for each text in a folder: its name, its token counts with each vocabulary, the features
//! of its tally, and its bytes.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::{env, fs};

use endmark_context::count::{Family, TextTally};

const VOCABULARIES: [Family; 4] = [Family::O200k, Family::Cl100k, Family::Claude3, Family::Claude47];

fn main() -> io::Result<()> {
    let folder = env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let files: io::Result<Vec<PathBuf>> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut files = files?;
    files.sort();
    let mut output = io::stdout().lock();
    for path in files {
        let text = fs::read_to_string(&path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let counted = VOCABULARIES.map(|family| family.tokens(&text));
        writeln!(output, "{name}\t{counted:?}\t{:?}\t{}", TextTally::of(&text).features(), text.len())?;
    }
    Ok(())
}
