// The canvas: React Flow fed from the document, and everything the pointer can do on it. Positions are local while something is
// dragged; the drop is one command. What React Flow knows besides comes from the document and the selection, never the reverse.

import {
  Background,
  BackgroundVariant,
  MiniMap,
  ReactFlow,
  ReactFlowProvider,
  SelectionMode,
  useReactFlow,
  useStore as useFlow,
  type NodeChange,
} from '@xyflow/react'
import '@xyflow/react/dist/base.css'
import { useStore } from 'zustand'
import { reducedMotion } from '../a11y'
import './css/canvas.css'
import './css/card.css'
import './css/foot.css'
import './css/far.css'
import './css/container.css'
import './css/stepper.css'
import './css/note.css'
import './css/port.css'
import './css/edge.css'
import './css/hint.css'
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState, type ReactElement } from 'react'
import type { BlockSpec, Document, Point } from '../api/types'
import { BLOCK_MIME } from '../actions/picker'
import { openPicker } from '../actions/picker'
import { importFiles } from '../actions/files'
import { collapsedStore, expandAround, shownDocument } from '../state/collapsed'
import { docStore, specsStore } from '../state/doc'
import { absoluteAt } from '../document/document'
import { runStore } from '../state/live'
import { openSheet, uiStore } from '../state/ui'
import { dropBlocks } from '../actions/arrange'
import { addBlock } from '../actions/edit'
import { inPlaceStore } from '../actions/inPlace'
import { BlockNode } from './BlockNode'
import { CanvasMenu } from './CanvasMenu'
import { connectStore, dragOver, fallInto, startConnecting } from '../actions/connect'
import { endConnecting, endReconnecting } from './connecting'
import { ConnectionLine } from './ConnectionLine'
import { ContainerNode } from './ContainerNode'
import type { CanvasMode } from './commands'
import { deriver, NOTE_PREFIX, type FlowLine, type FlowNode, type Local } from './flow'
import { EdgeSheet } from './EdgeSheet'
import { FlowEdge } from './FlowEdge'
import { hoverStore, leaveEdge, overEdge } from './hover'
import { useCanvasKeys } from './keyboard'
import { CULL_FROM, DetailContext, detailAt, MINIMAP_FROM, useConstantSize, useLevels, ZOOM_MIN } from './lod'
import { openMenu } from './menu'
import { ModeContext } from './mode'
import { futuresStore } from '../state/futures'
import { NoteNode } from './NoteNode'
import { worstOf } from './paint'
import { GRID } from '../geometry/size'
import { pointOf, useFreely, type PointerLike } from './pointer'
import { choose, chooseEdges, chooseNodes, forgetGone } from './selecting'
import { useEye } from './useEye'
import { useFit } from './useFit'
import { ZoomControl } from './ZoomControl'
import { useWays } from './useWays'
import { focusNode, followStore, setPointer } from '../actions/view'

/** React Flow is named with its licence (MIT) among the licences, not on every canvas. */
const PLAIN = { hideAttribution: true }
const EMPTY: Document = { format: 'weft/1', blocks: {}, edges: [] }
/** Edges are joined by `endReconnecting`, which knows the rules; but without a handler here their ends cannot be dragged. */
const NOT_BY_REACT_FLOW = (): void => undefined
const NOTHING_LOCAL: Local = new Map()
// Fetched when one zooms out.
const FarCanvas = lazy(() => import('./FarCanvas'))
// Fetched after the canvas: it is about runs that are kept as tests.
const KeptChips = lazy(() => import('./KeptChips'))
const FutureChips = lazy(() => import('./FutureChips'))
const NO_EDGES: FlowLine[] = []
const NO_NODES: FlowNode[] = []
const NODE_TYPES = { block: BlockNode, container: ContainerNode, note: NoteNode }
const EDGE_TYPES = { flow: FlowEdge }
const SPOKEN = {
  'node.a11yDescription.default':
    'Press Enter to edit, C to connect, Alt and an arrow key to follow connections, an arrow key to move, Delete to delete.',
  'node.a11yDescription.keyboardDisabled':
    'Press Enter to edit, C to connect, Alt and an arrow key to follow connections, an arrow key to move, Delete to delete.',
}
const MINIMAP_COLOURS: Readonly<Record<string, string>> = {
  succeeded: 'var(--ok)',
  failed: 'var(--err)',
  running: 'var(--run)',
  retrying: 'var(--run)',
  waiting: 'var(--wait)',
  attention: 'var(--wait)',
}

export default function Canvas({ mode = 'edit' }: { mode?: CanvasMode }): ReactElement {
  return (
    <ReactFlowProvider>
      <ModeContext value={mode}>
        <Inner mode={mode} />
      </ModeContext>
    </ReactFlowProvider>
  )
}

function Inner({ mode }: { mode: CanvasMode }): ReactElement {
  const edited = useStore(docStore, (s) => s.doc)
  const ran = useStore(runStore, (s) => s.doc)
  const readonly = useStore(docStore, (s) => s.readonly)
  const opened = useStore(docStore, (s) => s.id)
  const runId = useStore(runStore, (s) => s.id)
  const specs = useStore(specsStore, (s) => s.specs)
  const selection = useStore(uiStore, (s) => s.selection)
  const wantsMap = useStore(uiStore, (s) => s.minimap)
  const tidying = useStore(inPlaceStore, (s) => s.tidying)
  const collapsed = useStore(collapsedStore, (s) => s.byName)
  const parted = useStore(futuresStore, (s) => s.values.size > 0)
  const whole = mode === 'edit' ? edited : (ran ?? EMPTY)
  const doc = useMemo(() => shownDocument(whole), [whole, collapsed])
  const editable = mode === 'edit' && !readonly
  const [local, setLocal] = useState<Local>(NOTHING_LOCAL)
  const [derive] = useState(deriver)
  const nodes = useMemo(() => derive.nodes(doc, specs, selection, local), [derive, doc, specs, selection, local])
  const ways = useWays(doc, specs)
  const edges = useMemo(() => derive.edges(doc, specs, selection, ways), [derive, doc, specs, selection, ways])
  const flow = useReactFlow<FlowNode, FlowLine>()
  const frame = useRef<HTMLDivElement>(null)
  const [ready, setReady] = useState(false)
  /** A box is being drawn: it is about blocks; edges between them come along by themselves. */
  const boxing = useRef(false)
  const free = useFreely()
  const count = Object.keys(doc.blocks).length
  const large = count > CULL_FROM
  const detail = useFlow((s) => detailAt(s.transform[2]))
  const merged = large && detail !== 'near'
  const tiny = detail === 'tiny'
  const levels = useLevels(tiny, !reducedMotion())
  useConstantSize(frame)
  const fit = useFit(flow, frame, !ready ? null : mode === 'edit' ? opened : ran ? runId : null, doc, specs)
  useEye(flow, frame, fit, doc, specs)
  useCanvasKeys(mode)

  const onNodesChange = useCallback(
    (changes: NodeChange<FlowNode>[]) => {
      const chosen = changes.filter((change) => change.type === 'select')
      if (chosen.length) chooseNodes(chosen)
      const moved = changes.filter(
        (change) =>
          (change.type === 'position' && change.position) ||
          (change.type === 'dimensions' && change.resizing && change.dimensions),
      )
      if (!editable || !moved.length) return
      setLocal((before) => {
        const next = new Map(before)
        for (const change of moved) {
          if (change.type === 'position' && change.position)
            next.set(change.id, { ...next.get(change.id), at: [change.position.x, change.position.y] })
          if (change.type === 'dimensions' && change.dimensions)
            next.set(change.id, { ...next.get(change.id), size: [change.dimensions.width, change.dimensions.height] })
        }
        return next
      })
    },
    [editable],
  )

  // A change of the document ends what was local (the drop's command, an undo, an import), and what is gone is not selected.
  useEffect(() => {
    setLocal(NOTHING_LOCAL)
    forgetGone(whole)
  }, [whole])
  useEffect(() => expandAround(whole), [whole, selection])

  const toCanvas = (event: { clientX: number; clientY: number }): Point => {
    const { x, y } = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY }, { snapToGrid: false })
    return [x, y]
  }

  const onDrag = (event: PointerLike, moved: FlowNode[]): void => {
    const at = toCanvas(pointOf(event))
    const ids = moved.filter((node) => node.type !== 'note').map((node) => node.id)
    const { parent, reason } = ids.length ? fallInto(doc, specs, ids, at) : { parent: '', reason: null }
    const { clientX: x, clientY: y } = pointOf(event)
    dragOver(parent, reason, { x, y })
  }

  const onDragStop = (event: PointerLike, moved: FlowNode[]): void => {
    dragOver(null, null)
    const to: Record<string, Point> = {}
    const notes: Record<string, Point> = {}
    for (const node of moved) {
      const at: Point = [node.position.x, node.position.y]
      if (node.id.startsWith(NOTE_PREFIX)) notes[node.id.slice(NOTE_PREFIX.length)] = at
      else {
        const base: Point = node.parentId ? absoluteAt(doc, node.parentId) : [0, 0]
        to[node.id] = [base[0] + at[0], base[1] + at[1]]
      }
    }
    const changed = moved.some((node) => {
      const from = local.get(node.id)?.at
      return from !== undefined
    })
    if (changed) dropBlocks(to, notes, toCanvas(pointOf(event)))
    setLocal(NOTHING_LOCAL)
  }

  const onDrop = (event: React.DragEvent): void => {
    if (!editable) return
    const type = event.dataTransfer.getData(BLOCK_MIME)
    const at = toCanvas(event)
    const edge = edgeBelow(event)
    if (type && edge && fitsBetween(specs.get(type))) addBlock(type, { edge })
    else if (type) addBlock(type, { at: [at[0] - 104, at[1]] })
    else if (event.dataTransfer.files.length) void importFiles([...event.dataTransfer.files], at)
    else return
    event.preventDefault()
  }

  return (
    <div
      ref={frame}
      className="canvas"
      tabIndex={-1}
      data-mode={mode}
      data-tidying={tidying || undefined}
      data-testid="canvas"
      role="region"
      aria-label="Canvas"
      onPointerMove={(event) => setPointer({ x: event.clientX, y: event.clientY })}
      onPointerLeave={() => setPointer(null)}
      onFocus={(event) => {
        // Tab goes from block to block: the one it comes to is the one that keys are about.
        const node = event.target as HTMLElement
        const id = node.dataset.id
        if (id && node.matches('.react-flow__node:focus-visible') && !node.classList.contains('selected')) choose(id)
      }}
      onDragOver={(event) => {
        if (!editable) return
        event.preventDefault()
        event.dataTransfer.dropEffect = 'copy'
        const edge = event.dataTransfer.types.includes(BLOCK_MIME) ? edgeBelow(event) : undefined
        if (edge) overEdge(edge)
        else if (hoverStore.getState().edge !== null) leaveEdge()
      }}
      onDrop={onDrop}
      onDoubleClick={(event) => {
        if (!editable || !(event.target as HTMLElement).classList.contains('react-flow__pane')) return
        openPicker({ mode: 'add', screen: { x: event.clientX, y: event.clientY }, at: toCanvas(event) })
      }}
    >
      <DetailContext value={detail}>
        <ReactFlow<FlowNode, FlowLine>
          onInit={() => setReady(true)}
          nodes={levels.blocks ? nodes : NO_NODES}
          edges={merged || !levels.blocks ? NO_EDGES : edges}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          onNodesChange={onNodesChange}
          onEdgesChange={(changes) => chooseEdges(changes, boxing.current)}
          onSelectionStart={() => (boxing.current = true)}
          onSelectionEnd={() => (boxing.current = false)}
          nodesDraggable={editable}
          nodesConnectable={editable}
          edgesReconnectable={editable}
          connectOnClick={false}
          disableKeyboardA11y
          deleteKeyCode={null}
          selectionKeyCode={null}
          multiSelectionKeyCode={['Shift', 'Meta', 'Control']}
          panActivationKeyCode="Space"
          selectionOnDrag={editable && !tiny}
          selectionMode={SelectionMode.Partial}
          panOnDrag={editable && !tiny ? [1, 2] : true}
          panOnScroll
          zoomOnDoubleClick={false}
          snapToGrid={!free}
          snapGrid={[GRID, GRID]}
          minZoom={ZOOM_MIN}
          maxZoom={2}
          proOptions={PLAIN}
          ariaLabelConfig={SPOKEN}
          edgesFocusable={false}
          elevateNodesOnSelect={false}
          selectNodesOnDrag={false}
          nodeDragThreshold={3}
          connectionRadius={0}
          autoPanOnConnect={false}
          onlyRenderVisibleElements={large}
          connectionLineComponent={ConnectionLine}
          reconnectRadius={8}
          onNodeDrag={(event, _, moved) => onDrag(event, moved)}
          onNodeDragStop={(event, _, moved) => onDragStop(event, moved)}
          onConnectStart={(_, { nodeId, handleId }) =>
            nodeId && connectStore.getState().edge === null && startConnecting(doc, specs, nodeId, handleId ?? 'out')
          }
          onConnectEnd={(event) => endConnecting(event, toCanvas(pointOf(event)))}
          onReconnect={NOT_BY_REACT_FLOW}
          onReconnectStart={(_, edge, side) =>
            side === 'source' && startConnecting(doc, specs, edge.source, edge.sourceHandle ?? 'out', edge.id)
          }
          onReconnectEnd={(event, edge) => endReconnecting(event, edge, toCanvas(pointOf(event)))}
          onEdgeMouseEnter={(_, edge) => overEdge(edge.id)}
          onEdgeMouseLeave={leaveEdge}
          onNodeDoubleClick={(event, node) => {
            if (node.type === 'note') inPlaceStore.setState({ note: node.data.note ?? node.id })
            else if (
              node.type === 'container' &&
              editable &&
              !(event.target as HTMLElement).closest('.container__head')
            ) {
              openPicker({
                mode: 'add',
                screen: { x: event.clientX, y: event.clientY },
                at: toCanvas(event),
                parent: node.id,
              })
            } else openSheet(node.id)
          }}
          onNodeContextMenu={(event, node) => {
            event.preventDefault()
            if (!uiStore.getState().selection.blocks.includes(node.id)) choose(node.id)
            openMenu({ kind: 'block', x: event.clientX, y: event.clientY })
          }}
          onSelectionContextMenu={(event) => {
            event.preventDefault()
            openMenu({ kind: 'block', x: event.clientX, y: event.clientY })
          }}
          onPaneContextMenu={(event) => {
            event.preventDefault()
            openMenu({ kind: 'pane', x: event.clientX, y: event.clientY })
          }}
          onMoveStart={(event) => {
            moving(frame.current, large)
            if (event?.type === 'wheel') followStore.setState({ on: false })
          }}
          // Not where a move starts: a click starts one as well, and leaves the view as it is.
          onMove={(event) => {
            if (!event) return
            fit.moved()
            followStore.setState({ on: false })
          }}
          onMoveEnd={() => moving(frame.current, false)}
          onPaneClick={() => focusNode(null)}
          onNodeClick={(_, node) => focusNode(node.id)}
        >
          <Background variant={BackgroundVariant.Dots} gap={GRID} size={2} color="var(--dots)" />
          {wantsMap !== count >= MINIMAP_FROM && !tiny ? (
            <MiniMap<FlowNode>
              pannable
              zoomable
              ariaLabel="Minimap"
              className="minimap"
              nodeBorderRadius={4}
              nodeStrokeWidth={0}
              maskColor="color-mix(in srgb, var(--paper) 70%, transparent)"
              bgColor="var(--panel)"
              nodeColor={(node) =>
                node.type === 'container'
                  ? 'color-mix(in srgb, var(--edge) 22%, transparent)'
                  : (MINIMAP_COLOURS[worstOf(node.id)] ?? 'var(--edge)')
              }
            />
          ) : null}
          {editable ? (
            <Suspense fallback={null}>
              <KeptChips doc={doc} specs={specs} local={local} />
            </Suspense>
          ) : null}
          {mode === 'run' && parted ? (
            <Suspense fallback={null}>
              <FutureChips doc={doc} specs={specs} />
            </Suspense>
          ) : null}
          {merged && levels.blocks ? <EdgeSheet doc={doc} specs={specs} ways={ways} /> : null}
          {levels.weave ? (
            <Suspense fallback={null}>
              <FarCanvas doc={doc} specs={specs} ways={ways} leaving={!tiny} />
            </Suspense>
          ) : null}
        </ReactFlow>
      </DetailContext>
      <ZoomControl />
      <Hint />
      <CanvasMenu mode={mode} />
    </div>
  )
}

/** While a large canvas is panned its picture is moved, not painted again. */
function moving(canvas: HTMLElement | null, on: boolean): void {
  canvas?.toggleAttribute('data-panning', on)
}

/** The edge below the pointer, or the one whose plus is, by id. */
function edgeBelow(event: React.DragEvent): string | undefined {
  return (event.target as Element).closest<HTMLElement | SVGElement>('.react-flow__edge, .edge__plus')?.dataset.id
}

/** Can a block of this type be put into an edge? */
function fitsBetween(spec: BlockSpec | undefined): boolean {
  return !!spec && !spec.trigger && spec.category !== 'annotation'
}

function Hint(): ReactElement | null {
  const hint = useStore(connectStore, (s) => s.hint)
  return hint ? (
    <p
      className="hint"
      data-bad={hint.bad || undefined}
      role="status"
      data-testid="hint"
      style={{ left: hint.x + 14, top: hint.y + 14 }}
    >
      {hint.text}
    </p>
  ) : null
}

export { Canvas }
