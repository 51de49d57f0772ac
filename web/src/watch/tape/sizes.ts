// Heights of the Tape in pixels: known before any of its painters is loaded.

/** On a phone; folded. */
export const TAPE_H = 68
export const STRIP_H = 24
/** Unfolded: a lane, and the axis above them. */
export const LANE_H = 22
export const AXIS_H = 22
