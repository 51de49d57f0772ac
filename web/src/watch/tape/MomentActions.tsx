// Actions on the moment that is shown: share, compare, rewind, fork. Buttons, and on phones a menu.

import { lazy, Suspense, useRef, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { runStore, type RunState } from '../../state/live'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { copyText } from '../../ui/copy'
import type { IconName } from '../../ui/icons'
import { MenuButton } from '../../ui/Menu'
import { useWidthBelow } from '../../ui/useWidthBelow'
import { shortId } from '../../ui/words'
import { compareStore, compareWith } from './compare'
import { momentLink } from './moment'
import { pictureStore, savePicture } from './picture'
import { closeRewind, rewindStore } from './rewindStore'

const CompareMenu = lazy(() => import('./CompareMenu'))
const ForkDialog = lazy(() => import('../run/ForkDialog').then((page) => ({ default: page.ForkDialog })))

interface Action {
  label: string
  icon: IconName
  why: string | null
  testId?: string
  /** A switch with its name beside the icon. */
  pressed?: boolean
  onSelect: () => void
}

export function MomentActions({ mode, empty }: { mode: 'edit' | 'run'; empty: string | null }): ReactElement {
  const box = useRef<HTMLSpanElement>(null)
  const phone = useWidthBelow(600)
  const [forking, setForking] = useState(false)
  const [choosing, setChoosing] = useState<{ x: number; y: number } | null>(null)
  const meta = useStore(runStore, (s) => s.meta)
  const doc = useStore(runStore, (s) => s.doc)
  const seq = useStore(runStore, (s) => (s.cursor === 'live' ? s.head.seq : s.cursor))
  const compared = useStore(compareStore, (s) => s.id !== null)
  const choose = (): void => {
    const button = box.current!.querySelector('[data-testid=compare]') ?? box.current!.querySelector('button')!
    const { left, bottom } = button.getBoundingClientRect()
    setChoosing({ x: left, y: bottom })
  }
  const actions: Action[] = [
    sharing(empty),
    usePicture(empty),
    {
      label: compared ? 'Stop comparing' : 'Compare with another run',
      icon: compared ? 'close' : 'compare',
      testId: 'compare',
      why: empty ?? (meta ? null : 'Not loaded yet'),
      onSelect: () => (compared ? compareWith(null) : choose()),
    },
    ...useRewind(compared),
  ]
  if (mode === 'run')
    actions.push({
      label: 'Fork from here',
      icon: 'router',
      testId: 'fork-here',
      why: empty ?? (seq < 1 ? 'There is no event before this moment' : null),
      onSelect: () => setForking(true),
    })
  return (
    <span ref={box} className="drawer__actions">
      {phone ? (
        <MenuButton kind="bare" icon="more" iconOnly label="This moment" entries={actions}>
          More
        </MenuButton>
      ) : (
        actions.map((each) => (
          <Button
            key={each.icon}
            kind="bare"
            icon={each.icon}
            iconOnly={each.pressed === undefined}
            className={each.pressed === undefined ? '' : 'drawer__rewind'}
            aria-pressed={each.pressed}
            data-testid={each.testId}
            why={each.why}
            onClick={each.onSelect}
          >
            {each.label}
          </Button>
        ))
      )}
      <Suspense fallback={null}>
        {choosing ? <CompareMenu at={choosing} onClose={() => setChoosing(null)} /> : null}
        {forking && meta ? <ForkDialog run={meta} doc={doc} seq={seq} onClose={() => setForking(false)} /> : null}
      </Suspense>
    </span>
  )
}

const sharing = (empty: string | null): Action => ({
  label: 'Copy a link to this moment',
  icon: 'link',
  why: empty,
  onSelect: () => void copyText(momentLink(), 'Copied a link to this moment'),
})

function usePicture(empty: string | null): Action {
  const drawn = useStore(pictureStore, (s) => s.now !== null)
  const id = useStore(runStore, (s) => s.meta?.id ?? 'run')
  return {
    label: 'Save as a picture',
    icon: 'download',
    why: empty ?? (drawn ? null : 'Unfold the Tape first'),
    onSelect: () => savePicture(`tape-${shortId(id)}.png`),
  }
}

/** None without a block with steps, such as an agent, that has begun: a moment inside it can be another one. */
function useRewind(compared: boolean): Action[] {
  const steps = useStore(runStore, hasSteps)
  const pressed = useStore(rewindStore, (s) => s.open)
  if (!steps || compared) return []
  const onSelect = (): void => (pressed ? closeRewind() : void beginRewind())
  return [{ label: 'Rewind', icon: 'undo', why: null, testId: 'rewind', pressed, onSelect }]
}

function hasSteps({ head }: RunState): boolean {
  for (const node of head.nodes.values()) if (node.steps.length) return true
  return false
}

/** For the block that is selected, else for the one that began last. */
async function beginRewind(): Promise<void> {
  const { openRewind } = await import('./rewind')
  const { blocks } = uiStore.getState().selection
  openRewind(blocks.length === 1 ? blocks[0]! : null)
}
