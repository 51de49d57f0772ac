/** What a block type that is dragged out of the palette is called on the clipboard. */
export const BLOCK_MIME = 'application/x-weft-block'
