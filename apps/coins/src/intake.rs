//! [`Intake`]: a coin that came in.

use tenure::core::Invalid;
use tenure::{Database, Record, StoreError, row};

/// Longest id.
const ID_BYTES_MAX: usize = 200;
/// Longest mintmark, denomination, series and title: behind the longest name of a source they still make a key that a cache
/// takes.
const MINTMARK_BYTES_MAX: usize = 20;
const DENOMINATION_BYTES_MAX: usize = 60;
const SERIES_BYTES_MAX: usize = 100;
const TITLE_BYTES_MAX: usize = 200;

/// A coin, as it was described when it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intake {
    /// A name of the caller's.
    pub id: String,
    /// The year on it.
    pub year: u16,
    /// Where it was struck: `D`, `S`; empty where there is none.
    pub mintmark: String,
    /// What it was worth then: `dollar`.
    pub denomination: String,
    /// What collectors call it: `Morgan`.
    pub series: String,
    /// In the words of who brought it.
    pub title: String,
}

impl Intake {
    /// Stores it. One that is there already stays as it is: the answer says whether it is new.
    pub async fn add(&self, database: &Database) -> Result<bool, StoreError> {
        self.check()?;
        let it = self.clone();
        let added = database.transaction(move |tx| {
            let insert = "insert into coin_intake (id, year, mintmark, denomination, series, title, created_at) \
                          values ($1, $2, $3, $4, $5, $6, $7) on conflict (id) do nothing";
            let row = row![it.id, i32::from(it.year), it.mintmark, it.denomination, it.series, it.title, tx.now()?];
            tx.execute(insert, row)
        });
        Ok(added.await? == 1)
    }

    /// The intake of this id, if there is one.
    pub async fn find(database: &Database, id: &str) -> Result<Option<Self>, StoreError> {
        let found = database.query("select * from coin_intake where id = $1", row![id]).await?;
        found.first().map(Self::read).transpose()
    }

    /// What a source's answer about this coin is kept under: `source_id|year|mintmark|denomination|series|title`.
    pub fn cache_key(&self, source: &str) -> String {
        let Self { year, mintmark, denomination, series, title, .. } = self;
        format!("{source}|{year}|{mintmark}|{denomination}|{series}|{title}")
    }

    fn read(row: &Record) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            year: row.get("year")?,
            mintmark: row.get("mintmark")?,
            denomination: row.get("denomination")?,
            series: row.get("series")?,
            title: row.get("title")?,
        })
    }

    fn check(&self) -> Result<(), Invalid> {
        if !(1..=9999).contains(&self.year) {
            return Err(Invalid::new("year", self.year, "a coin is of the years 1 to 9999"));
        }
        let texts = [
            ("id", &self.id, ID_BYTES_MAX, true),
            ("mintmark", &self.mintmark, MINTMARK_BYTES_MAX, false),
            ("denomination", &self.denomination, DENOMINATION_BYTES_MAX, true),
            ("series", &self.series, SERIES_BYTES_MAX, false),
            ("title", &self.title, TITLE_BYTES_MAX, true),
        ];
        for (field, text, bytes_max, needed) in texts {
            if text.len() > bytes_max || text.chars().any(|c| c.is_control() || c == '|') {
                let limit = format!("it has at most {bytes_max} bytes, no control characters and no |");
                return Err(Invalid::new(field, text, limit));
            }
            if needed && text.trim().is_empty() {
                return Err(Invalid::new(field, text, "it is not empty"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tenure::core::name::TEXT_BYTES_MAX;

    use super::*;
    use crate::source::ID_BYTES_MAX as SOURCE_BYTES_MAX;
    use crate::world::morgan;

    /// Shows: S0.28
    #[test]
    fn the_cache_key_is_the_source_and_everything_that_tells_coins_apart() {
        assert_eq!(morgan().cache_key("ebay"), "ebay|1921|D|dollar|Morgan|1921-D Morgan");
    }

    #[test]
    fn a_field_that_would_blur_the_key_is_refused_by_its_name() {
        let refused = |change: &dyn Fn(&mut Intake)| {
            let mut intake = morgan();
            change(&mut intake);
            intake.check().unwrap_err().field
        };
        assert_eq!(refused(&|it| it.series = "a|b".into()), "series");
        assert_eq!(refused(&|it| it.year = 0), "year");
        assert_eq!(refused(&|it| it.title = " ".into()), "title");
        assert_eq!(refused(&|it| it.mintmark = "x".repeat(21)), "mintmark");
        assert_eq!(refused(&|it| it.id = "a|b".into()), "id");
        assert!(Intake { mintmark: String::new(), ..morgan() }.check().is_ok());
    }

    #[test]
    fn the_longest_coin_and_source_have_a_key_that_a_cache_takes() {
        let longest = Intake {
            id: "x".repeat(ID_BYTES_MAX),
            year: 9999,
            mintmark: "x".repeat(MINTMARK_BYTES_MAX),
            denomination: "x".repeat(DENOMINATION_BYTES_MAX),
            series: "x".repeat(SERIES_BYTES_MAX),
            title: "x".repeat(TITLE_BYTES_MAX),
        };
        longest.check().unwrap();
        assert!(longest.cache_key(&"x".repeat(SOURCE_BYTES_MAX)).len() <= TEXT_BYTES_MAX);
    }
}
