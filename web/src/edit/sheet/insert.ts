// Putting a reference into a field: at the caret of the field that had the keyboard last, or where it is dropped. The browser
// inserts it, so that the field's own undo takes it back.

/** The type of what is dragged: only fields of the sheet take it as a reference. */
export const DRAGGED = 'application/x-weft-reference'

/** The text field that `target` is or lies in. A code editor is its host, with the editable part in its shadow. */
export function fieldOf(target: EventTarget | null): HTMLElement | null {
  if (!(target instanceof HTMLElement)) return null
  const own = target.shadowRoot ? target : target.closest<HTMLElement>('textarea')
  if (own) return own
  const around = target.closest('.fld')
  if (!around) return null
  const text = around.querySelector<HTMLElement>('textarea')
  if (text) return text
  return [...around.querySelectorAll<HTMLElement>('*')].find((each) => each.shadowRoot) ?? null
}

/** False: there is no field that takes text. */
export function insertInto(field: HTMLElement | null, reference: string): boolean {
  if (!field?.isConnected) return false
  if (field instanceof HTMLTextAreaElement) {
    if (field.readOnly || field.disabled) return false
    field.focus()
    const inJson = field.dataset.json !== undefined && !isQuoted(field.value.slice(0, field.selectionStart))
    return document.execCommand('insertText', false, inJson ? JSON.stringify(reference) : reference)
  }
  const editable = field.shadowRoot?.querySelector<HTMLElement>('[contenteditable=true]')
  if (!editable) return false
  editable.focus()
  return document.execCommand('insertText', false, reference)
}

/** Does JSON text end inside a string? */
function isQuoted(before: string): boolean {
  return (before.replace(/\\./g, '').match(/"/g)?.length ?? 0) % 2 === 1
}
