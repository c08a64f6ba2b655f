//! Size of the file, and its limit.

use linerate_units::ByteCount;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::history::History;
use crate::{HistoryError, document};

/// Name of the limit in table `settings`.
const SIZE_LIMIT: &str = "size_limit_bytes";

/// Runs that a size limit deletes: the oldest ones without a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletedRuns {
    /// Their number.
    pub count: u64,
}

impl History {
    /// Size of the stored runs in the file, without the free pages.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn size(&self) -> Result<ByteCount, HistoryError> {
        self.reading("measuring the history", used)
    }

    /// Largest size of the stored runs; `None` for no limit.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn size_limit(&self) -> Result<Option<ByteCount>, HistoryError> {
        self.reading("reading the size limit", size_limit)
    }

    /// Sets the largest size of the stored runs; `None` removes the limit. Deletes nothing by itself: see
    /// [`Self::delete_excess`].
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn set_size_limit(&mut self, limit: Option<ByteCount>) -> Result<(), HistoryError> {
        self.writing("setting the size limit", |transaction| store_limit(transaction, limit))
    }

    /// Runs that [`Self::delete_excess`] would delete with this limit.
    ///
    /// # Errors
    ///
    /// As [`Self::delete_excess`].
    pub fn excess(&mut self, limit: ByteCount) -> Result<DeletedRuns, HistoryError> {
        self.trying("measuring the history", |transaction| delete_oldest(transaction, limit))
    }

    /// Deletes the oldest runs without a tag until the others are within the size limit. The latest run stays, and so
    /// do runs with a tag, whatever their size. Without a limit nothing is deleted.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn delete_excess(&mut self) -> Result<DeletedRuns, HistoryError> {
        let Some(limit) = self.size_limit()?.filter(|limit| self.size().is_ok_and(|size| size > *limit)) else {
            return Ok(DeletedRuns::default());
        };
        let deleted = self.writing("deleting runs", |transaction| delete_oldest(transaction, limit))?;
        self.release_free_pages();
        Ok(deleted)
    }

    /// Returns free pages to the file system, as far as there is room to move the others. A file that stays large is no
    /// damage: later runs use its free pages.
    pub(crate) fn release_free_pages(&mut self) {
        let _ = self.reading("releasing free pages", |connection| {
            let mut statement = connection.prepare("PRAGMA incremental_vacuum")?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
            Ok(())
        });
    }
}

/// Bytes of the pages in use.
fn used(connection: &Connection) -> rusqlite::Result<ByteCount> {
    let query = "SELECT (page_count - freelist_count) * page_size \
                 FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
    connection.query_row(query, [], |row| row.get(0)).map(bytes)
}

fn bytes(number: i64) -> ByteCount {
    ByteCount::new(u64::try_from(number).unwrap_or(0))
}

fn size_limit(connection: &Connection) -> rusqlite::Result<Option<ByteCount>> {
    let query = "SELECT value FROM settings WHERE name = ?1";
    Ok(connection.query_row(query, [SIZE_LIMIT], |row| row.get(0)).optional()?.map(bytes))
}

fn store_limit(transaction: &Transaction<'_>, limit: Option<ByteCount>) -> rusqlite::Result<()> {
    match limit {
        Some(limit) => transaction.execute(
            "INSERT OR REPLACE INTO settings VALUES (?1, ?2)",
            params![SIZE_LIMIT, document::integer(limit.get())],
        )?,
        None => transaction.execute("DELETE FROM settings WHERE name = ?1", [SIZE_LIMIT])?,
    };
    Ok(())
}

fn delete_oldest(transaction: &Transaction<'_>, limit: ByteCount) -> rusqlite::Result<DeletedRuns> {
    let mut oldest = transaction.prepare(
        "DELETE FROM runs WHERE id = (SELECT id FROM runs \
         WHERE NOT EXISTS (SELECT 1 FROM tags WHERE run = id) AND id <> (SELECT max(id) FROM runs) \
         ORDER BY started_at_unix_ns, id LIMIT 1)",
    )?;
    let mut deleted = DeletedRuns::default();
    while used(transaction)? > limit && oldest.execute([])? > 0 {
        deleted.count += 1;
    }
    Ok(deleted)
}
