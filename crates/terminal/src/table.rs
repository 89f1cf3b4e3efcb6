//! Rows of cells in aligned columns.

use crate::{columns, cut, mask, wrapped};

/// How many columns of the last cell stay before other columns are left out.
const LAST: usize = 16;

/// Rows of cells, the first of them the names of the columns, which are aligned. Where they are wider than the room, the last
/// cell is cut. If that is not enough, those columns that may go are left out, the first of them first, and the last line
/// names them.
pub fn table(rows: &[Vec<String>], may_go: &[&str], room: Option<usize>) -> Vec<String> {
    let mask = mask();
    let hidden = |row: &Vec<String>| row.iter().map(|cell| mask.text(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(hidden).collect();
    let Some(heads) = rows.first() else { return Vec::new() };
    let widest =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(cell)).max();
    let widths: Vec<usize> = (0..heads.len()).map(|column| widest(column).unwrap_or(0)).collect();
    let mut shown: Vec<usize> = (0..heads.len()).collect();
    let mut gone = Vec::new();
    let room = room.unwrap_or(usize::MAX);
    for name in may_go {
        let last = shown.last().copied().filter(|last| !may_go.contains(&heads[*last].as_str()));
        let room_for = |column: usize| if Some(column) == last { LAST } else { usize::MAX };
        let needed: usize = shown.iter().map(|column| widths[*column].min(room_for(*column)) + 2).sum();
        if needed <= room.saturating_add(2) {
            break;
        }
        shown.retain(|column| heads[*column] != *name);
        gone.push(*name);
    }
    let line = |row: &Vec<String>| {
        let cells = shown.iter().map(|column| {
            let cell = row.get(*column).map_or("", String::as_str);
            let is_last = shown.last() == Some(column);
            let gap = if is_last { 0 } else { widths[*column].saturating_sub(columns(cell)) };
            format!("{cell}{}", " ".repeat(gap))
        });
        cut(&cells.collect::<Vec<_>>().join("  "), room)
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    if !gone.is_empty() {
        lines.extend(wrapped(&format!("(in a wider terminal also: {})", gone.join(", ")), room));
    }
    lines
}

#[cfg(test)]
mod tests {
    use towline_mask::Secrets;

    use super::*;

    #[test]
    fn a_table_cuts_its_last_cell_before_it_gives_up_what_may_go() {
        let rows = [["ID", "KIND", "WHERE"], ["1", "日本", "here and there and everywhere"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let shaped = |room| table(&rows, &["KIND"], room);
        assert_eq!(shaped(None), ["ID  KIND  WHERE", "1   日本  here and there and everywhere"]);
        assert_eq!(shaped(Some(39)), shaped(None));
        assert_eq!(shaped(Some(26))[1], "1   日本  here and there …");
        let gone = ["(in a wider terminal", "  also: KIND)"];
        assert_eq!(shaped(Some(25)), ["ID  WHERE", "1   here and there and e…", gone[0], gone[1]]);
        assert_eq!(shaped(Some(16))[..2], ["ID  WHERE", "1   here and th…"]);
    }

    #[test]
    fn a_table_has_no_secrets() {
        let mut known = Secrets::default();
        known.add("MY_TOKEN", "first-half-second-half9");
        crate::secrets().add(&known);
        let rows = [vec!["A".to_owned()], vec!["first-half-second-half9".to_owned()]];
        assert_eq!(table(&rows, &[], None), ["A", "[masked MY_TOKEN]"]);
    }
}
