// A run as the interface sees it: what its events add up to (`fold`), and what can be asked of that.

export { askedOf } from './asked'
export { fold, reduce } from './fold'
export * from './model'
export * from './questions'
export * from './steps'
