/** Entries as the context shows them: the parts that plugins use. */

/** An entry. Which fields it has depends on its `type`. */
export interface Entry {
  type: string;
  /** None while it is pending. */
  id?: string;
  /** When it was made (ISO 8601). */
  timestamp?: string;
  /** Of `message`. */
  message?: Message;
  /** Of `custom` and `custom_message`. */
  customType?: string;
  /** Of `custom`. */
  data?: unknown;
  /** Of `custom_message`. */
  content?: Content;
  /** Of `compaction` and `branch_summary`. */
  summary?: string;
  /** Of `compaction`. */
  firstKeptEntryId?: string;
  /** Of `context_edit`. */
  targetId?: string;
  /** Of `compaction`, `branch_summary` and `custom_message`. */
  details?: unknown;
}

/** A message. Which fields it has depends on its `role`. */
export interface Message {
  /** `user`, `assistant`, `toolResult` and others. */
  role: string;
  content?: Content;
  /** Of `assistant`: why it stopped. */
  stopReason?: string;
  /** Of `assistant`: what went wrong. */
  errorMessage?: string;
  /** Of `toolResult`: the call that it answers. */
  toolCallId?: string;
  /** Of `toolResult`. */
  toolName?: string;
  /** Of `toolResult`. */
  isError?: boolean;
  /** Of `bashExecution`. */
  command?: string;
  /** Of `bashExecution`. */
  output?: string;
}

/** The content of a message: text or blocks. */
export type Content = string | Block[];

/** A block of content. Which fields it has depends on its `type`. */
export interface Block {
  /** `text`, `thinking`, `toolCall`, `image` and others. */
  type: string;
  text?: string;
  thinking?: string;
  /** Of `toolCall`. */
  id?: string;
  /** Of `toolCall`: the tool. */
  name?: string;
  /** Of `toolCall`. */
  arguments?: Record<string, unknown>;
}

/** The texts of an entry's content, joined by line breaks. */
export function textOf(entry: Entry): string {
  const content = contentOf(entry);
  if (typeof content === "string") return content;
  return content.flatMap((block) => (typeof block.text === "string" ? [block.text] : [])).join("\n");
}

/** The tool calls in an entry's content. */
export function toolCallsOf(entry: Entry): Block[] {
  const content = contentOf(entry);
  return typeof content === "string" ? [] : content.filter((block) => block.type === "toolCall");
}

function contentOf(entry: Entry): Content {
  return entry.message?.content ?? entry.content ?? [];
}
