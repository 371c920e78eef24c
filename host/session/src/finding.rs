//! Everything that can be found wrong with a session file: the one table of what it is, how bad it is, which rule it goes
//! against, and what Pi does with it.
//!
//! The page `FINDINGS.md` beside this crate shows the table; `tests/findings.rs` holds it against the page, each row
//! against a session that has it, and what it says of Pi against the real one.

use crate::problem::Severity;

macro_rules! findings {
    ($($kind:ident $name:literal $severity:ident $rule:literal $what:literal => $pi:literal)*) => {
        /// A kind of finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Finding {
            $(#[doc = $what] $kind,)*
        }

        impl Finding {
            /// All kinds, in the order of the table.
            pub const ALL: &'static [Finding] = &[$(Finding::$kind,)*];

            /// Its name, for programs: stays as it is.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Finding::$kind => $name,)* }
            }

            /// How bad it is.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Finding::$kind => Severity::$severity,)* }
            }

            /// The rule of the format it goes against; `4.5` is the one of receipts.
            #[must_use]
            pub fn rule(self) -> &'static str {
                match self { $(Finding::$kind => $rule,)* }
            }

            /// What is wrong, in a few words.
            #[must_use]
            pub fn what(self) -> &'static str {
                match self { $(Finding::$kind => $what,)* }
            }

            /// What Pi does with it.
            #[must_use]
            pub fn pi(self) -> &'static str {
                match self { $(Finding::$kind => $pi,)* }
            }
        }
    };
}

findings! {
    // The file and its lines.
    NotASession "not-a-session" Error "S2.3" "the first line that means something is no session header"
        => "refuses to open the file, and leaves it as it is"
    NoHeader "no-header" Error "S2.3" "no line means anything"
        => "refuses to open the file, and leaves it as it is"
    EmptyFile "empty-file" Info "S2.3" "the file is empty: a session not yet begun"
        => "begins a session in it"
    FarHeader "far-header" Warning "S2.3" "the header does not end within the first MiB of the file"
        => "opens and lists it, but passes it over when it looks for the newest session or one by its id"
    HeaderReturn "header-return" Error "S2.1" "a carriage return stands within the header's line"
        => "opens it, but does not list it"
    LineReturn "line-return" Error "S2.1" "a carriage return stands within the line of a message or of the session's name"
        => "reads it, but not when it lists the session"
    HeaderField "header-field" Info "S3" "the header has no text `timestamp` or `cwd`"
        => "opens it; without `cwd` it works in the directory that it was started in"
    OddSessionId "odd-session-id" Info "S1.3" "the session's id has characters that Pi gives to none"
        => "opens it; it would not make a session of that id"
    OldVersion "old-version" Info "S11.2" "a file of version 1 or 2"
        => "writes the whole file anew, as version 3, when it opens it"
    NewerVersion "newer-version" Warning "S3" "a version newer than 3"
        => "opens it as version 3, and appends to it without a word"
    SecondHeader "second-header" Info "S2.3" "a second header"
        => "ignores it"
    BadLine "bad-line" Warning "S2.2" "the line is not JSON"
        => "skips the line"
    GluedLines "glued-lines" Error "S2.4" "the line holds another entry behind what it begins with"
        => "skips the whole line, with every entry on it"
    LongLine "long-line" Error "S2.2" "the line is longer than 512 MiB"
        => "cannot hold it as one text, and does not open the file"
    TornEnd "torn-end" Warning "S2.4" "the last line is torn, or still being written"
        => "skips it, and ends it when it opens the file"
    OpenEnd "open-end" Warning "S2.4" "the last line has no line end"
        => "counts it, and ends it when it opens the file"
    SkippedValue "skipped-value" Info "S2.2" "the line is null, false, 0 or an empty text"
        => "skips the line"
    NoId "no-id" Warning "S2.2" "an entry without an id"
        => "keeps it where nothing can hang on it, so it is in no context"
    NoIdAtEnd "no-id-at-end" Error "S2.2" "the last entry has no id"
        => "opens the session without a leaf: what comes next is a new root, without the context before it"
    OldValue "old-value" Error "S11.1" "the line is JSON but no object, in a file of version 1"
        => "fails to migrate the file, and does not open it"
    BadUtf8 "bad-utf8" Warning "S2.1" "a text holds bytes that are not UTF-8"
        => "reads U+FFFD in their place"

    // The entry and its place in the tree.
    NoType "no-type" Warning "S4.1" "the entry has no `type`"
        => "carries it in the tree; it is in no context"
    UnknownType "unknown-type" Info "S2.5" "an unknown type of entry"
        => "carries it in the tree; it is in no context"
    NoTime "no-time" Warning "S4.1" "the entry's timestamp is no ISO 8601 text"
        => "takes what JavaScript reads as a time, else has none for it"
    TimeBeforeParent "time-before-parent" Warning "S12.2" "it is older than its parent"
        => "does not mind; it sorts the children of one entry by time when it shows the tree"
    DuplicateId "duplicate-id" Error "S8.5" "the id stands twice"
        => "takes the later line for the entry; what hung on the earlier one hangs on it"
    NoParent "no-parent" Error "S8.5" "`parentId` is neither an id nor null"
        => "begins a path here: what was before it is not in the context"
    UnknownParent "unknown-parent" Error "S8.1" "its parent is not in the file"
        => "begins a path here: what was before it is not in the context"
    ForwardParent "forward-parent" Info "S8.1" "its parent stands later in the file"
        => "finds the parent: the context is whole"
    Cycle "cycle" Error "S8.5" "its parents lead in a circle"
        => "shows none of the entries on it in its tree; on a branch that leads there it eats gigabytes and dies"
    CycleAtLeaf "cycle-at-leaf" Error "S8.5" "the parents of the leaf lead in a circle"
        => "eats gigabytes and dies when it opens the session"

    // Messages.
    NoMessage "no-message" Error "S12.9" "a message entry without its message"
        => "fails to build a context with it, to draw its footer and tree, and to list the session"
    NoRole "no-role" Warning "S5" "the message has no `role`"
        => "sends nothing of it to the model"
    UnknownRole "unknown-role" Info "S2.5" "an unknown role"
        => "carries it in the context, and sends nothing of it to the model"
    MessageTime "message-time" Warning "S4.1" "the message's own timestamp is no number of milliseconds"
        => "does not mind"
    ContentType "content-type" Error "S12.9" "the content is neither text nor blocks"
        => "fails to count, compact and send a context with it"
    NullContent "null-content" Error "S5" "the content of the message is null"
        => "reads it as empty, but does not list the session any more"
    NoContent "no-content" Warning "S5" "the message has no content"
        => "reads it as empty"
    NullBlock "null-block" Error "S12.9" "null stands among the blocks"
        => "fails to count, compact and send a context with it"
    OddBlock "odd-block" Warning "S5" "a block is no object"
        => "does not count it; what it sends of it depends on the provider"
    UnknownBlock "unknown-block" Info "S2.5" "an unknown type of block"
        => "does not count it; what it sends of it depends on the provider"
    TextBlock "text-block" Error "S12.9" "a text block without text"
        => "fails to send a context with it; in an assistant's message to count, compact and show it, too"
    ThinkingBlock "thinking-block" Error "S5" "a thinking block without thinking"
        => "fails to count, compact and show a context with it"
    CallBlock "call-block" Error "S5" "a tool call without an id, a name or arguments"
        => "fails to count and compact a context with it; without an id, to send it to another model"
    AssistantText "assistant-text" Error "S5" "an assistant's content is text, not blocks"
        => "counts nothing of it, and fails to show and send it"
    ResultText "result-text" Error "S5" "a tool result's content is text, not blocks"
        => "sends nothing of the text to the model"
    BadUsage "bad-usage" Error "S4.5" "a usage without its cost, or no usage where there must be one"
        => "fails to draw its footer, so that its terminal does not work with the session"
    UsageNumber "usage-number" Error "S4.5" "a number of the usage is something else, or has no end"
        => "adds it up as it is: what it shows as used is wrong, and it may count no number of tokens and not see when to compact"
    UsagePart "usage-part" Warning "S4.5" "a number is missing from the usage"
        => "shows no number for the sum"
    AssistantModel "assistant-model" Warning "S5" "an assistant's message without `api`, `provider` or `model`"
        => "does not know which model to go on with, and takes its default"
    OddStop "odd-stop" Info "S5" "an unknown stop reason, or none"
        => "takes the message as one that ended well"
    BashFields "bash-fields" Error "S5" "a bashExecution without `command` or `output`"
        => "fails to count and compact a context with it"
    SummaryMessage "summary-message" Error "S5" "a message with the role of a summary, without one"
        => "fails to count and compact a context with it"
    SystemTools "system-tools" Error "S5.1" "`toolsAdded` or `toolsRemoved` is no list of tools"
        => "fails to count, compact and send a context with it; of a text it takes the characters for tools"
    SystemSection "system-section" Error "S5.1" "a section is neither text nor null, or the sections are no object"
        => "counts no number of tokens, so that it does not see when to compact; of a text or a list it makes sections"
    SystemReplace "system-replace" Warning "S5.1" "`replace: true`"
        => "does not act on it: the prompt from before stays, too"
    NestedCalls "nested-calls" Error "S10.5" "`nestedCalls.calls` is no list of calls"
        => "fails to compact"

    // Entries of extensions.
    NoCustomType "no-custom-type" Warning "S12.4" "no `customType`"
        => "shows it without one; no extension finds it"
    NoCustomContent "no-custom-content" Error "S12.9" "a custom_message without content"
        => "fails to show its tree; in the context it reads as empty"
    NoDisplay "no-display" Info "S4.3" "`display` is neither true nor false"
        => "does not show it, and sends it to the model"

    // Compactions and summaries of branches.
    NoSummary "no-summary" Error "S12.9" "a compaction without a summary"
        => "fails to count a context with it, and tells the model that the summary is `undefined`"
    EmptySummary "empty-summary" Warning "S12.5" "a compaction with an empty summary"
        => "tells the model nothing of what was before"
    NoFirstKept "no-first-kept" Error "S6.1" "a compaction without `firstKeptEntryId`"
        => "keeps nothing from before it: all that its summary does not tell is lost"
    KeptOffPath "kept-off-path" Error "S12.5" "the first kept entry is not on the path to the compaction"
        => "keeps nothing from before it: all that its summary does not tell is lost"
    TokensBefore "tokens-before" Error "S12.9" "`tokensBefore` is no number"
        => "fails to show the session in its terminal, where it is missing or null"
    CompactionSystem "compaction-system" Error "S6.2" "a `systemMessage` without content that is text or blocks"
        => "fails to count and send a context with it"
    CompactionRole "compaction-role" Error "S6.2" "the `systemMessage` is no system message"
        => "takes it for what it says it is; the system prompt from before is not sent any more"
    CompactionTwice "compaction-twice" Warning "S12.5" "no message came since the compaction before it"
        => "shows the last one only: what the other summary told counts if this one tells it again"
    BranchSummaryText "branch-summary-text" Error "S8.4" "a branch summary without text"
        => "fails to show its tree"
    EmptyBranchSummary "empty-branch-summary" Info "S9.3" "an empty branch summary"
        => "makes no message of it"
    UnknownOrigin "unknown-origin" Info "S8.4" "`fromId` names no entry"
        => "does not mind"

    // Context edits.
    NoReplacement "no-replacement" Error "S7.4" "an edit without `replacement`"
        => "fails to build a context in which its target stands"
    ReplacementContent "replacement-content" Error "S12.9" "a replacement without content that is text or blocks"
        => "fails to count and compact a context in which its target stands"
    UnknownTarget "unknown-target" Warning "S7.4" "the edit's target is not in the file"
        => "ignores the edit"
    TargetOffPath "target-off-path" Warning "S7.4" "the edit's target is not on the path to the edit"
        => "ignores the edit"
    TargetHidden "target-hidden" Warning "S12.6" "a compaction had summarised the edit's target away before"
        => "ignores the edit"
    TargetSilent "target-silent" Warning "S7.1" "the edit's target gives no message that it could change"
        => "ignores the edit"
    TargetUnfit "target-unfit" Warning "S7.1" "the edit's target is of a kind that is not to be edited"
        => "does what the edit says all the same"
    EditText "edit-text" Info "S7.2" "text, not a block, for an assistant's message or a tool result"
        => "makes a block of it"

    // Small entries.
    ModelChange "model-change" Warning "S4.3" "a model change without `provider` or `modelId`"
        => "finds no such model to go on with, and takes its default"
    LevelChange "level-change" Warning "S4.3" "a change of the thinking level without a level"
        => "has no level to go on with"
    UnknownLabelled "unknown-labelled" Info "S4.6" "the label's target is not in the file"
        => "shows it nowhere"
    LabelText "label-text" Warning "S4.6" "the label is no text"
        => "shows it as JavaScript makes a text of it"
    NameText "name-text" Error "S4.6" "the session's name is no text"
        => "fails when it asks for the name, and does not list the session any more"

    // Calls, results and grafts.
    CallOpen "call-open" Info "S12.6" "the last tool call has no result yet"
        => "answers in its place that no result was provided"
    CallAlone "call-alone" Warning "S12.6" "a tool call in the context has no result before the next message"
        => "answers in its place that no result was provided"
    ResultAlone "result-alone" Error "S12.6" "a tool result in the context does not follow its call"
        => "sends it as it is; providers refuse such a request, every time anew"
    ReceiptUnread "receipt-unread" Warning "4.5" "a receipt of pi-graft that says nothing"
        => "carries it in the tree; it is in no context"
    ReceiptIncomplete "receipt-incomplete" Warning "4.5" "not all of the graft follows its receipt"
        => "does not mind: what is there counts"
}
