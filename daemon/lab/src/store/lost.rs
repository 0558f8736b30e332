//! How a daemon loses the right to write.

/// How a daemon lost the right to write to a store on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LostLease {
    /// Another daemon, which is named, is the host now.
    Replaced(String),
    /// The host was away for so long that its runs were given to others.
    Released,
    /// Another host had its turn while it was not known what came of a change of this one's.
    Overtaken,
}

impl LostLease {
    /// How the lease was lost that `holder` has, if anybody has it.
    pub(super) fn of(holder: Option<String>) -> LostLease {
        holder.map_or(LostLease::Released, LostLease::Replaced)
    }
}
