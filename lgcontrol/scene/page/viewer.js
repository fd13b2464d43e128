// The page of scenes: bodies that move, a time line, plots. Data come from the page itself, texts are
// set as text, and nothing is fetched.
import * as THREE from 'three';
import { OrbitControls } from 'three/examples/jsm/controls/OrbitControls.js';
import { ColladaLoader } from 'three/examples/jsm/loaders/ColladaLoader.js';
import { mergeGeometries } from 'three/examples/jsm/utils/BufferGeometryUtils.js';
import { GLTFLoader } from 'three/examples/jsm/loaders/GLTFLoader.js';

const THEMES = {
  light: { back: 0xf4f6f8, grid: 0xd3d9df, line: 0xb3bcc5, ink: '#20252b', faint: '#7b858f', rule: '#dde2e7', shadow: 0.16 },
  dark: { back: 0x14181c, grid: 0x2b3238, line: 0x414b54, ink: '#e7ebee', faint: '#8f9aa4', rule: '#323a41', shadow: 0.45 },
};
const LINES = ['#3f78c9', '#d9622b', '#3a9a5b', '#8d62b8', '#c79a1b', '#22a3b0', '#c8433a', '#7a848d'];
const TONES = [[0.93, 0.94, 0.95], [0.80, 0.83, 0.87]]; // of links, in turns
const TINTS = [null, [0.90, 0.45, 0.15], [0.25, 0.50, 0.85], [0.30, 0.65, 0.40]]; // of further runs
const ROLES = {
  obstacle: { color: [0.80, 0.42, 0.36], opacity: 0.75 },
  reference: { color: [0.25, 0.62, 0.38], opacity: 0.28 },
  estimate: { color: [0.55, 0.40, 0.75], opacity: 0.3 },
  gate: { color: [0.24, 0.62, 0.38], opacity: 0.22 },
  hull: { color: [0.40, 0.55, 0.75], opacity: 0.14 },
};
const PATHS = { trail: '#3f78c9', reference: '#3a9a5b', plan: '#d9622b', estimate: '#8d62b8' };
const CONTACT = 0xff2d2d;

const el = (id) => document.getElementById(id);
const make = (tag, text, parent, name) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (name) node.className = name;
  if (parent) parent.append(node);
  return node;
};

async function unpacked(id) {
  const packed = Uint8Array.from(atob(el(id).textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}

// ---------------------------------------------------------------------------------------- data

function arraysOf(table, buffer) {
  const kinds = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u1: Uint8Array };
  const found = {};
  for (const [name, [kind, start, count, columns]] of Object.entries(table)) {
    const made = new kinds[kind](buffer.slice(start, start + count * kinds[kind].BYTES_PER_ELEMENT));
    found[name] = { data: made, columns };
  }
  return found;
}

// ---------------------------------------------------------------------------------------- shapes

const manager = new THREE.LoadingManager();
const BLANK = 'data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7';
manager.setURLModifier((url) => (/^(data|blob):/.test(url) ? url : BLANK));

function geometry(shape, arrays) {
  switch (shape.type) {
    case 'box': return new THREE.BoxGeometry(...shape.size);
    case 'sphere': return new THREE.SphereGeometry(shape.radius, ...(three.plain ? [20, 12] : [32, 20]));
    case 'cylinder':
      return new THREE.CylinderGeometry(shape.radius, shape.radius, shape.length, three.plain ? 24 : 40).rotateX(Math.PI / 2);
    case 'capsule':
      return new THREE.CapsuleGeometry(shape.radius, shape.length, ...(three.plain ? [5, 18] : [10, 28])).rotateX(Math.PI / 2);
    case 'cone': {
      const a = shape.half_angle, n = 12, rim = [...Array(n + 1).keys()].map((k) => a * (1 - k / n));
      const profile = [[0, 0], ...rim.map((b) => [Math.sin(b) * shape.length, Math.cos(b) * shape.length])];
      return new THREE.LatheGeometry(profile.map(([x, y]) => new THREE.Vector2(Math.max(x, 0), y)), 48).rotateX(Math.PI / 2);
    }
    case 'mesh': {
      let made = new THREE.BufferGeometry();
      made.setAttribute('position', new THREE.BufferAttribute(arrays[shape.vertices].data, 3));
      made.setIndex(new THREE.BufferAttribute(new Uint32Array(arrays[shape.faces].data), 1));
      made = made.toNonIndexed(); // flat faces: files of scanned and of drawn parts look right
      made.computeVertexNormals();
      return made;
    }
  }
  throw new Error(`unknown shape ${shape.type}`);
}

function material(color, opacity) {
  const look = {
    color: new THREE.Color().setRGB(...color, THREE.SRGBColorSpace),
    transparent: opacity < 1, opacity, side: THREE.DoubleSide, depthWrite: opacity > 0.5,
  };
  if (three.plain) return new THREE.MeshLambertMaterial(look);
  return new THREE.MeshStandardMaterial({ ...look, roughness: 0.6, metalness: 0.05 });
}

function placed(object, pose) {
  object.position.set(pose[0], pose[1], pose[2]);
  object.quaternion.set(pose[3], pose[4], pose[5], pose[6]);
  return object;
}

// Meshes in formats that only loaders know, read before the stage is built: their size counts.
async function readEncoded(data, buffer) {
  const told = [];
  for (const run of data) {
    const arrays = arraysOf(run.table, buffer);
    run.meshes = {};
    for (const body of run.scene.bodies) for (const shape of body.shapes) {
      if (shape.type !== 'dae' && shape.type !== 'glb') continue;
      if (!(shape.data in run.meshes)) {
        try { run.meshes[shape.data] = await parsed(shape.type, arrays[shape.data].data); }
        catch (error) {
          run.meshes[shape.data] = null;
          told.push(`a ${shape.type} mesh of ${body.name} cannot be shown: ${error.message ?? error}`);
        }
      }
      const mesh = run.meshes[shape.data];
      if (!mesh) continue;
      const bounds = new THREE.Box3().setFromObject(mesh), p = arrays[body.poses].data, place = placed(new THREE.Group(), p);
      for (let k = 0; k < 8; k++) {
        const corner = V().set(...[0, 1, 2].map((i) => bounds[(k >> i) & 1 ? 'max' : 'min'].getComponent(i) * shape.scale[i]));
        corner.applyQuaternion(Q().set(...shape.pose.slice(3))).add(V().set(...shape.pose.slice(0, 3)));
        corner.applyQuaternion(place.quaternion).add(place.position);
        [0, 1, 2].forEach((i) => {
          run.extent[0][i] = Math.min(run.extent[0][i], corner.getComponent(i));
          run.extent[1][i] = Math.max(run.extent[1][i], corner.getComponent(i));
        });
      }
    }
  }
  return told;
}

async function parsed(kind, bytes) {
  if (kind === 'glb') return (await new GLTFLoader(manager).parseAsync(bytes.slice().buffer, '')).scene;
  const made = new ColladaLoader(manager).parse(new TextDecoder().decode(bytes), '');
  if (!made) throw new Error('it is no COLLADA file');
  made.scene.rotation.set(0, 0, 0); // the axes of the file are those of its link
  made.scene.updateMatrixWorld(true);
  return made.scene;
}

function encoded(shape, meshes, look) {
  const group = new THREE.Group();
  if (meshes[shape.data]) {
    const own = meshes[shape.data].clone();
    own.traverse((o) => { if (o.isMesh) { o.castShadow = o.receiveShadow = true; if (look) o.material = look; } });
    group.add(own);
  }
  group.scale.set(...shape.scale);
  return group;
}

// ---------------------------------------------------------------------------------------- state

let runs = [], three, now = 0, last = 0, playing = false, speed = 1, theme, shows = { frames: false, plots: true };
let follows = false, start = 0, end = 0, sliders = [], contacts = [], dirty = true;
const V = () => new THREE.Vector3(), Q = () => new THREE.Quaternion();

function build(data, buffer, unread) {
  runs = data.map(({ scene, table, meshes }, index) => {
    const arrays = arraysOf(table, buffer);
    const t = arrays[scene.t].data, tint = TINTS[index % TINTS.length];
    const bodies = scene.bodies.map((body, k) => bodyOf(body, k, arrays, meshes, index, tint));
    const paths = scene.paths.map((path) => pathOf(path, arrays, index));
    const goals = scene.goals.map(goalOf);
    const arrows = scene.arrows.map((arrow) => arrowOf(arrow, arrays));
    return { scene, t, bodies, paths, goals, arrows, arrays };
  });
  start = Math.min(...runs.map((run) => run.t[0]));
  end = Math.max(...runs.map((run) => run.t[run.t.length - 1]));
  showNotices([...new Set([...data.flatMap((one) => one.scene.notices), ...unread])]);
}

function bodyOf(body, k, arrays, meshes, index, tint) {
  const group = new THREE.Group();
  group.name = body.name;
  const role = ROLES[body.role];
  const opacity = index && !role ? 0.6 : role ? role.opacity : 1;
  const looks = new Map(); // shapes of a body that look alike are one mesh: a draw each costs
  for (const shape of body.shapes) {
    let color = shape.color ?? (role ? [...role.color, 1] : [...TONES[k % 2], 1]);
    if (role && body.role !== 'obstacle') color = [...role.color, 1];
    if (tint) color = [...tint, color[3]];
    const own = (color[3] ?? 1) * (role || index ? opacity : 1) * (shape.type === 'cone' ? 0.4 : 1);
    if (shape.type === 'dae' || shape.type === 'glb') {
      const paint = shape.color || role || tint ? material(color.slice(0, 3), own) : null;
      group.add(placed(encoded(shape, meshes, paint), shape.pose));
      continue;
    }
    const place = placed(new THREE.Object3D(), shape.pose), key = JSON.stringify([color.slice(0, 3), own]);
    place.updateMatrix();
    let part = geometry(shape, arrays);
    if (part.index) part = part.toNonIndexed();
    part.deleteAttribute('uv');
    if (!looks.has(key)) looks.set(key, { color, own, parts: [] });
    looks.get(key).parts.push(part.applyMatrix4(place.matrix));
  }
  for (const { color, own, parts } of looks.values()) {
    const object = new THREE.Mesh(mergeGeometries(parts), material(color.slice(0, 3), own));
    object.castShadow = own > 0.7;
    object.receiveShadow = true;
    group.add(object);
  }
  const poses = arrays[body.poses];
  three.scene.add(group);
  let axes = null;
  if (body.role === 'body') {
    axes = new THREE.AxesHelper(1);
    axes.setColors(0xc9433a, 0x3a9d5c, 0x2c5fb3);
    axes.material.depthTest = false;
    axes.renderOrder = 2;
    axes.visible = false;
    group.add(axes);
  }
  return { ...body, group, axes, p: poses.data, fixed: poses.data.length === 7, capsules: capsulesOf(body) };
}

function capsulesOf(body) {
  if (!['body', 'obstacle'].includes(body.role)) return [];
  return body.shapes.filter((s) => s.type === 'capsule' || (s.type === 'sphere' && s.radius > 0)).map((s) => {
    const q = Q().set(...s.pose.slice(3)), c = V().set(...s.pose.slice(0, 3));
    const half = V().set(0, 0, (s.length ?? 0) / 2).applyQuaternion(q);
    return { a: c.clone().sub(half), b: c.clone().add(half), r: s.radius };
  });
}

function pathOf(path, arrays, index) {
  const points = arrays[path.points].data, made = new THREE.BufferGeometry();
  made.setAttribute('position', new THREE.BufferAttribute(points, 3));
  const color = index && path.role === 'trail' ? LINES[(index + 3) % LINES.length] : PATHS[path.role];
  const dashed = path.role !== 'trail';
  const look = dashed
    ? new THREE.LineDashedMaterial({ color, dashSize: 0.02 * three.size, gapSize: 0.012 * three.size })
    : new THREE.LineBasicMaterial({ color });
  const line = new THREE.Line(made, look);
  if (dashed) line.computeLineDistances();
  line.frustumCulled = false;
  three.scene.add(line);
  return { ...path, line, count: points.length / 3 };
}

function goalOf(goal) {
  const group = placed(new THREE.Group(), goal.pose), s = 0.06 * three.size;
  const axes = new THREE.AxesHelper(s);
  axes.setColors(0xc9433a, 0x3a9d5c, 0x2c5fb3);
  group.add(axes);
  if (goal.tolerance > 0) group.add(new THREE.Mesh(new THREE.SphereGeometry(goal.tolerance, 24, 16), material([0.24, 0.62, 0.38], 0.35)));
  // Whatever the distance and the tolerance, a ring on the screen says where the goal is.
  const mark = new THREE.Sprite(new THREE.SpriteMaterial({ map: ring(), depthTest: false, transparent: true }));
  mark.renderOrder = 3;
  group.add(mark);
  three.scene.add(group);
  return { group, mark, radius: goal.tolerance };
}

const GOAL_PIXELS = 7; // least radius of a goal's mark on the screen
let drawn = null;
function ring() {
  if (drawn) return drawn;
  const canvas = document.createElement('canvas'), c = (canvas.width = canvas.height = 64, canvas.getContext('2d'));
  for (const [color, width] of [['#ffffff', 16], ['#1d7a3e', 9]]) { c.strokeStyle = color; c.lineWidth = width; c.beginPath(); c.arc(32, 32, 23, 0, 2 * Math.PI); c.stroke(); }
  c.fillStyle = '#1d7a3e'; c.beginPath(); c.arc(32, 32, 6, 0, 2 * Math.PI); c.fill();
  drawn = new THREE.CanvasTexture(canvas);
  drawn.colorSpace = THREE.SRGBColorSpace;
  return drawn;
}

function sizeMarks() {
  const h = el('view').clientHeight, slope = 2 * Math.tan((three.camera.fov * Math.PI) / 360);
  for (const run of runs) for (const { group, mark, radius } of run.goals) {
    const pixel = (slope * three.camera.position.distanceTo(group.position)) / Math.max(h, 1);
    mark.visible = radius < GOAL_PIXELS * pixel;
    mark.scale.setScalar(2 * GOAL_PIXELS * pixel);
  }
}

function arrowOf(arrow, arrays) {
  const made = new THREE.ArrowHelper(V().set(0, 0, 1), V(), 1, 0xd9622b, 0.2, 0.1);
  const v = arrays[arrow.vectors].data;
  let most = 1e-12;
  for (let k = 0; k < v.length; k += 3) most = Math.max(most, Math.hypot(v[k], v[k + 1], v[k + 2]));
  three.scene.add(made);
  return { made, s: arrays[arrow.starts].data, v, scale: (0.4 * three.size) / most };
}

// ---------------------------------------------------------------------------------------- time

function between(t, at) {
  let k = 0, h = t.length - 1;
  while (h - k > 1) { const m = (k + h) >> 1; if (t[m] <= at) k = m; else h = m; }
  const w = h > k ? Math.min(1, Math.max(0, (at - t[k]) / (t[h] - t[k]))) : 0;
  return [k, h, w];
}

const a = V(), b = V(), q0 = Q(), q1 = Q();
function show(at) {
  now = Math.min(end, Math.max(start, at));
  for (const run of runs) {
    const [k, h, w] = between(run.t, now);
    for (const body of run.bodies) {
      if (run.scene.joints?.length && body.role === 'body') continue;
      const p = body.p, i = body.fixed ? 0 : 7 * k, j = body.fixed ? 0 : 7 * h;
      a.set(p[i], p[i + 1], p[i + 2]); b.set(p[j], p[j + 1], p[j + 2]);
      body.group.position.lerpVectors(a, b, w);
      q0.set(p[i + 3], p[i + 4], p[i + 5], p[i + 6]); q1.set(p[j + 3], p[j + 4], p[j + 5], p[j + 6]);
      body.group.quaternion.slerpQuaternions(q0, q1, w);
    }
    for (const path of run.paths) {
      if (path.role === 'trail' && path.count === run.t.length) path.line.geometry.setDrawRange(0, Math.max(2, k + 1 + (w >= 1)));
    }
    for (const one of run.arrows) {
      const v = b.fromArray(one.v, 3 * k), length = v.length() * one.scale;
      one.made.visible = length > 1e-3 * three.size;
      one.made.position.fromArray(one.s, 3 * k);
      if (one.made.visible) { one.made.setDirection(v.normalize()); one.made.setLength(length, 0.25 * length, 0.15 * length); }
    }
  }
  follow();
  el('t').value = now;
  el('now').textContent = `${now.toFixed(end - start >= 100 ? 1 : 2)} s`;
  showEvent();
  drawCursors();
  touch();
}

// The camera goes along with the first body that moves.
function leader() { return runs[0].bodies.find((body) => body.role === 'body' && !body.fixed); }
const led = V();
function follow() {
  const body = leader();
  if (!follows || !body) return;
  const step = body.group.position.clone().sub(led);
  three.camera.position.add(step);
  three.controls.target.add(step);
  led.copy(body.group.position);
}

function setFollow(on) {
  const body = leader();
  follows = on && !!body;
  el('follow').setAttribute('aria-pressed', follows);
  if (!follows) return;
  led.copy(body.group.position);
  const bounds = new THREE.Box3();
  body.group.updateMatrixWorld(true);
  body.group.children.forEach((child) => { if (child !== body.axes) bounds.expandByObject(child); });
  const radius = Math.max(bounds.getSize(V()).length(), 1e-3 * three.size);
  const away = three.camera.position.clone().sub(three.controls.target).setLength(Math.min(7 * radius, three.home.distanceTo(three.target)));
  three.controls.target.copy(led);
  three.camera.position.copy(led).add(away);
  three.controls.update();
  touch();
}

function showEvent() {
  const window_ = Math.max(0.02 * (end - start), 0.15);
  const near = runs.flatMap((run) => run.scene.events).filter((e) => now >= e.t && now - e.t <= window_);
  el('event').textContent = near.map((e) => e.name).join(' · ');
  el('event').hidden = !near.length;
}

// ---------------------------------------------------------------------------------------- joints

function expTwist(twist, angle, position, quaternion) {
  const w = V().set(twist[3], twist[4], twist[5]), v = V().set(twist[0], twist[1], twist[2]), n = w.length();
  if (n < 1e-12) { quaternion.identity(); position.copy(v).multiplyScalar(angle); return; }
  const axis = w.clone().divideScalar(n), turn = n * angle;
  quaternion.setFromAxisAngle(axis, turn);
  const pitch = axis.dot(v) / n, lever = axis.clone().cross(v).divideScalar(n); // v = −ω × lever + pitch ω
  position.copy(lever).sub(lever.clone().applyQuaternion(quaternion)).add(axis.multiplyScalar(pitch * turn));
}

function pose(run) {
  const byName = Object.fromEntries(run.bodies.filter((x) => x.role === 'body').map((x) => [x.name, x]));
  const values = Object.fromEntries(run.scene.joints.filter((x) => x.name === x.leader).map((x) => [x.name, x.value]));
  const p = V(), q = Q();
  for (const joint of run.scene.joints) {
    const body = byName[joint.body], carrier = byName[joint.carrier];
    expTwist(joint.twist, joint.scale * (values[joint.leader] ?? 0) + joint.shift, p, q);
    const g = placed(body.group, joint.before);
    g.position.add(p.applyQuaternion(g.quaternion));
    g.quaternion.multiply(q);
    const after = joint.after;
    g.position.add(p.set(...after.slice(0, 3)).applyQuaternion(g.quaternion));
    g.quaternion.multiply(q.set(...after.slice(3)));
    if (carrier) {
      g.position.applyQuaternion(carrier.group.quaternion).add(carrier.group.position);
      g.quaternion.premultiply(carrier.group.quaternion);
    }
  }
  touch();
}

function buildJoints() {
  const run = runs[0], joints = (run.scene.joints ?? []).filter((x) => x.leader === x.name && x.twist.some((v) => v !== 0));
  if (!joints.length) return;
  const panel = el('joints');
  panel.hidden = false;
  for (const joint of joints) {
    const row = make('label', undefined, panel), name = make('span', joint.name, row, 'name');
    const input = make('input', undefined, row), value = make('span', '', row, 'value');
    const turn = joint.twist.slice(3).some((v) => v !== 0);
    const low = joint.lower ?? (turn ? -Math.PI : -0.5), high = joint.upper ?? (turn ? Math.PI : 0.5);
    Object.assign(input, { type: 'range', step: 'any', min: Math.min(low - 0.08 * (high - low), joint.value), max: Math.max(high + 0.08 * (high - low), joint.value), value: joint.value });
    input.dataset.joint = joint.name;
    const told = () => {
      joint.value = +input.value;
      const beyond = (joint.lower !== null && joint.value < joint.lower) || (joint.upper !== null && joint.value > joint.upper);
      row.className = beyond ? 'beyond' : '';
      value.textContent = (turn ? `${((joint.value * 180) / Math.PI).toFixed(0)}°` : `${joint.value.toFixed(3)} m`) + (beyond ? ' limit' : '');
      pose(run);
      findContacts();
    };
    name.title = joint.name;
    input.oninput = told;
    sliders.push(told);
  }
  make('p', '', panel, 'contacts').id = 'contacts';
  for (const told of sliders) told();
}

// Capsules of bodies that are not next to each other, and do not overlap as they were given.
function buildContacts() {
  const bodies = runs[0].bodies.filter((x) => x.capsules.length), parent = {};
  for (const joint of runs[0].scene.joints ?? []) parent[joint.body] = joint.carrier;
  const near = (x, y) => parent[x.name] === y.name || parent[y.name] === x.name;
  contacts = [];
  for (let i = 0; i < bodies.length; i++) for (let j = 0; j < i; j++) {
    const [x, y] = [bodies[i], bodies[j]];
    if (x.role === 'obstacle' && y.role === 'obstacle') continue;
    if (near(x, y)) continue;
    for (const c of x.capsules) for (const d of y.capsules) {
      const pair = { x, y, c, d };
      if (x.role === 'body' && y.role === 'body' && gap(pair).gap < 0) continue;
      contacts.push(pair);
    }
  }
  if (contacts.length > 4000) contacts = [];
}

const ends = [V(), V(), V(), V()];
function gap({ x, y, c, d }) {
  const [p1, p2, p3, p4] = ends;
  [[p1, x, c.a], [p2, x, c.b], [p3, y, d.a], [p4, y, d.b]].forEach(([to, body, from]) =>
    to.copy(from).applyQuaternion(body.group.quaternion).add(body.group.position));
  const u = p2.clone().sub(p1), v = p4.clone().sub(p3), w = p1.clone().sub(p3);
  const A = u.dot(u), B = u.dot(v), C = v.dot(v), D = u.dot(w), E = v.dot(w), clamp = (s) => Math.min(1, Math.max(0, s));
  let s, t;
  if (A < 1e-12 && C < 1e-12) { s = t = 0; }
  else if (A < 1e-12) { s = 0; t = clamp(E / C); }
  else if (C < 1e-12) { t = 0; s = clamp(-D / A); }
  else {
    const n = A * C - B * B;
    s = n > 1e-12 * A * C ? clamp((B * E - C * D) / n) : 0;
    t = (B * s + E) / C;
    if (t < 0) { t = 0; s = clamp(-D / A); } else if (t > 1) { t = 1; s = clamp((B - D) / A); }
  }
  const one = p1.clone().addScaledVector(u, s), other = p3.clone().addScaledVector(v, t);
  return { gap: one.distanceTo(other) - c.r - d.r, at: one.lerp(other, c.r / Math.max(c.r + d.r, 1e-12)) };
}

function findContacts() {
  three.marks.forEach((mark) => { mark.visible = false; });
  const names = new Set();
  let k = 0;
  for (const pair of contacts) {
    const found = gap(pair);
    if (found.gap >= 0) continue;
    names.add(`${pair.x.name} – ${pair.y.name}`);
    if (k >= three.marks.length) {
      const made = new THREE.Mesh(new THREE.SphereGeometry(0.012 * three.size, 16, 12),
        new THREE.MeshBasicMaterial({ color: CONTACT, depthTest: false, transparent: true, opacity: 0.85 }));
      made.renderOrder = 3;
      three.scene.add(made);
      three.marks.push(made);
    }
    three.marks[k].position.copy(found.at);
    three.marks[k++].visible = true;
  }
  const text = names.size ? `contact: ${[...names].join(', ')}` : '';
  if (el('contacts')) {
    el('contacts').textContent = text || 'no contact';
    el('contacts').className = text ? 'touching' : '';
  }
  el('touch').textContent = text;
  el('touch').hidden = !text || !!el('contacts');
}

// ---------------------------------------------------------------------------------------- plots

let panels = [];
function buildPlots() {
  const box = el('plots');
  const titles = [...new Set(runs.flatMap((run) => run.scene.plots.map((plot) => plot.title)))];
  panels = titles.map((title) => {
    const panel = make('figure', undefined, box), head = make('figcaption', undefined, panel), drawing = make('div', undefined, panel, 'drawing'), canvas = make('canvas', undefined, drawing);
    make('b', title, head);
    const lines = runs.flatMap((run, index) => run.scene.plots.filter((plot) => plot.title === title).flatMap((plot) => {
      const t = run.arrays[plot.t].data, values = run.arrays[plot.values].data, m = plot.names.length;
      return plot.names.map((name, k) => ({ name, k, m, t, values, index, limits: plot.limits }));
    }));
    lines.forEach((line, k) => {
      line.color = LINES[(runs.length > 1 ? line.k * 2 + line.index : k) % LINES.length];
      const label = lines.length > 1 ? `${line.name}${runs.length > 1 ? ` (${line.index + 1})` : ''}` : line.name;
      const tag = make('span', label, head);
      tag.style.color = line.color;
      line.tag = make('i', '', tag);
    });
    const sheet = { title, canvas, lines, cursor: make('div', undefined, drawing, 'cursor') };
    canvas.onpointerdown = (e) => { canvas.setPointerCapture(e.pointerId); pause(); seek(sheet, e); };
    canvas.onpointermove = (e) => { if (e.buttons) seek(sheet, e); };
    return sheet;
  });
  if (!panels.length) { shows.plots = false; el('plots').hidden = true; el('plots-button').hidden = true; }
}

function seek(sheet, event) {
  const w = sheet.canvas.clientWidth - 46 - 12;
  show(start + ((event.offsetX - 46) / w) * (end - start));
}

function drawPlots() {
  if (!shows.plots) return;
  const colors = THEMES[theme], ratio = Math.min(devicePixelRatio, 2);
  for (const sheet of panels) {
    const { canvas, lines } = sheet, W = canvas.clientWidth, H = canvas.clientHeight;
    if (!W) continue;
    canvas.width = W * ratio; canvas.height = H * ratio;
    const c = canvas.getContext('2d');
    c.scale(ratio, ratio);
    c.font = '10px system-ui, sans-serif';
    let low = Infinity, high = -Infinity;
    for (const line of lines) for (let i = line.k; i < line.values.length; i += line.m) {
      const v = line.values[i];
      if (v < low) low = v;
      if (v > high) high = v;
    }
    if (!(high >= low)) { low = 0; high = 1; }
    const [bottom, top] = lines[0].limits, span = high - low || Math.abs(high) || 1;
    for (const limit of [bottom, top]) if (limit !== null && limit > low - 0.6 * span && limit < high + 0.6 * span) { low = Math.min(low, limit); high = Math.max(high, limit); }
    if (high === low) { high += 0.5 * span; low -= 0.5 * span; }
    const pad = 0.06 * (high - low);
    low -= pad; high += pad;
    const X = (t) => 46 + ((t - start) / (end - start || 1)) * (W - 58), Y = (v) => H - 16 - ((v - low) / (high - low)) * (H - 22);
    sheet.X = X; sheet.H = H;
    c.strokeStyle = colors.rule; c.fillStyle = colors.faint; c.lineWidth = 1; c.textAlign = 'right'; c.textBaseline = 'middle';
    for (const v of ticks(low, high, 4)) { c.beginPath(); c.moveTo(46, Y(v)); c.lineTo(W - 12, Y(v)); c.stroke(); c.fillText(short(v), 42, Y(v)); }
    c.textAlign = 'center'; c.textBaseline = 'top';
    for (const t of ticks(start, end, 5)) c.fillText(short(t), X(t), H - 12);
    c.setLineDash([4, 3]); c.strokeStyle = '#c8433a';
    for (const limit of [bottom, top]) if (limit !== null && limit >= low && limit <= high) { c.beginPath(); c.moveTo(46, Y(limit)); c.lineTo(W - 12, Y(limit)); c.stroke(); }
    c.setLineDash([2, 3]); c.strokeStyle = colors.faint;
    for (const e of runs.flatMap((run) => run.scene.events)) { c.beginPath(); c.moveTo(X(e.t), 4); c.lineTo(X(e.t), H - 16); c.stroke(); }
    c.setLineDash([]); c.lineWidth = 1.4;
    for (const line of lines) {
      c.strokeStyle = line.color;
      c.beginPath();
      const n = line.t.length, step = Math.max(1, Math.floor(n / (2 * W)));
      for (let i = 0; i < n; i += step) { // the largest and smallest of each piece, so that no spike is lost
        let x = line.values[i * line.m + line.k], y = x;
        for (let j = i; j < Math.min(n, i + step); j++) { const v = line.values[j * line.m + line.k]; if (v < x) x = v; if (v > y) y = v; }
        c.lineTo(X(line.t[i]), Y(y)); if (x !== y) c.lineTo(X(line.t[i]), Y(x));
      }
      c.stroke();
    }
  }
  drawCursors();
}

function drawCursors() {
  if (!shows.plots) return;
  for (const { cursor, lines, X } of panels) {
    if (!X) continue;
    cursor.style.transform = `translateX(${X(now)}px)`;
    for (const line of lines) { const [k] = between(line.t, now); line.tag.textContent = ` ${short(line.values[k * line.m + line.k])}`; }
  }
}

function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((s) => s * power >= raw), found = [];
  for (let v = Math.ceil(low / step) * step; v <= high + 1e-9 * step; v += step) found.push(Math.abs(v) < 1e-9 * step ? 0 : v);
  return found;
}
const short = (v) => (Number.isFinite(v) ? String(+v.toPrecision(3)) : '–');

// ---------------------------------------------------------------------------------------- view

// Whether the processor draws, for want of a graphics card: every pixel and sample costs.
function drawnBySoftware() {
  const gl = document.createElement('canvas').getContext('webgl2');
  const name = gl?.getExtension('WEBGL_debug_renderer_info') ? gl.getParameter(0x9246) : gl?.getParameter(gl.RENDERER);
  gl?.getExtension('WEBGL_lose_context')?.loseContext();
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name ?? '');
}

function buildStage(data) {
  const plain = drawnBySoftware();
  const renderer = new THREE.WebGLRenderer({ antialias: !plain });
  renderer.setPixelRatio(plain ? 1 : Math.min(devicePixelRatio, 2));
  renderer.shadowMap.enabled = !plain;
  renderer.shadowMap.type = THREE.PCFShadowMap;
  el('view').append(renderer.domElement);
  const scene = new THREE.Scene(), extents = data.map((one) => one.extent);
  const low = [0, 1, 2].map((i) => Math.min(...extents.map((e) => e[0][i]))), high = [0, 1, 2].map((i) => Math.max(...extents.map((e) => e[1][i])));
  const size = Math.max(...[0, 1, 2].map((i) => high[i] - low[i]), 1e-3);
  const center = V().set(...[0, 1, 2].map((i) => (low[i] + high[i]) / 2));
  const given = data[0].scene.camera;
  const camera = new THREE.PerspectiveCamera(35, 1, 0.001 * size, 60 * size);
  camera.up.set(0, 0, 1);
  const radius = 0.5 * Math.hypot(...[0, 1, 2].map((i) => high[i] - low[i])) || size;
  const target = given ? V().set(...given[1]) : center;
  const home = given ? V().set(...given[0]) : center.clone().add(V().set(0.54, -0.75, 0.38).multiplyScalar(3.5 * radius));
  const box = given ? null : [low, high];
  const controls = new OrbitControls(camera, renderer.domElement);
  controls.enableDamping = false;
  controls.addEventListener('change', touch);
  scene.add(new THREE.HemisphereLight(0xffffff, 0xa4adb6, 1.7));
  const sun = new THREE.DirectionalLight(0xffffff, 2.0);
  sun.position.copy(center).add(V().set(0.9, -1.1, 2.2).multiplyScalar(size));
  sun.target.position.copy(center);
  sun.castShadow = true;
  sun.shadow.mapSize.set(1024, 1024);
  Object.assign(sun.shadow.camera, { left: -1.3 * size, right: 1.3 * size, bottom: -1.3 * size, top: 1.3 * size, near: 0.01 * size, far: 8 * size });
  sun.shadow.normalBias = 0.004 * size;
  scene.add(sun, sun.target);
  const floor = low[2] < -1e-3 * size ? low[2] : low[2] > 2 * size ? low[2] - 0.5 * size : 0;
  const ground = new THREE.Mesh(new THREE.PlaneGeometry(60 * size, 60 * size), new THREE.ShadowMaterial({ opacity: 0.16 }));
  ground.receiveShadow = true;
  ground.position.set(center.x, center.y, floor - 1e-3 * size);
  ground.visible = !plain; // it shows shadows alone
  scene.add(ground);
  const cell = 10 ** Math.floor(Math.log10(size)) / (size / 10 ** Math.floor(Math.log10(size)) > 4 ? 1 : 4);
  const half = Math.ceil((2.5 * size) / cell) * cell;
  const grid = new THREE.GridHelper(2 * half, Math.round((2 * half) / cell), 0, 0);
  grid.rotation.x = Math.PI / 2;
  grid.position.set(Math.round(center.x / cell) * cell, Math.round(center.y / cell) * cell, floor - 1.5e-3 * size);
  scene.add(grid);
  three = { renderer, scene, camera, controls, size, home, target, box, ground, grid, plain, marks: [] };
}

// Least distance from the middle of a box at which the window holds its eight corners.
const EDGE = 0.86; // of the half window
function distanceToSee([low, high], toward) {
  const right = V().crossVectors(three.camera.up, toward).normalize(), up = V().crossVectors(toward, right);
  const tall = EDGE * Math.tan((three.camera.fov * Math.PI) / 360), wide = tall * three.camera.aspect, corner = V();
  let distance = 0.1 * three.size;
  for (let k = 0; k < 8; k++) {
    corner.set(...[0, 1, 2].map((i) => ((k >> i) & 1 ? 0.5 : -0.5) * (high[i] - low[i])));
    const across = Math.max(Math.abs(corner.dot(right)) / wide, Math.abs(corner.dot(up)) / tall);
    distance = Math.max(distance, across + corner.dot(toward));
  }
  return distance;
}

function resetCamera() {
  setFollow(false);
  const away = three.home.clone().sub(three.target);
  if (three.box) away.setLength(distanceToSee(three.box, away.clone().normalize()));
  else away.multiplyScalar(Math.max(1, 1.15 / three.camera.aspect)); // a tall window needs more distance
  three.camera.position.copy(three.target).add(away);
  three.controls.target.copy(three.target);
  three.controls.update();
  touch();
}

function setTheme(name) {
  theme = name;
  document.documentElement.dataset.theme = name;
  const colors = THEMES[name];
  three.scene.background = new THREE.Color(colors.back);
  three.scene.fog = new THREE.Fog(colors.back, 4 * three.size, 9 * three.size);
  three.grid.material.dispose();
  three.grid.material = new THREE.LineBasicMaterial({ color: colors.grid });
  three.ground.material.opacity = colors.shadow;
  drawPlots();
  touch();
}

function resize() {
  const w = el('view').clientWidth, h = el('view').clientHeight;
  three.renderer.setSize(w, h);
  three.camera.aspect = w / Math.max(h, 1);
  three.camera.updateProjectionMatrix();
  drawPlots();
  touch();
}

function setFrames(on) {
  shows.frames = on;
  el('frames').setAttribute('aria-pressed', on);
  for (const run of runs) for (const body of run.bodies) if (body.axes) {
    body.axes.visible = on;
    body.axes.scale.setScalar((run.bodies.length > 3 ? 0.06 : 0.12) * three.size);
  }
  touch();
}

function setPlots(on) {
  shows.plots = on && panels.length > 0;
  el('plots').hidden = !shows.plots;
  el('plots-button').setAttribute('aria-pressed', shows.plots);
  resize();
}

function screenshot() {
  render();
  const link = document.createElement('a');
  link.download = `${(runs[0].scene.title || 'scene').replace(/[^\w.-]+/g, '_')}-${now.toFixed(2)}s.png`;
  link.href = three.renderer.domElement.toDataURL('image/png');
  link.click();
}

function pause() { playing = false; el('play').textContent = '▶'; }
function play() {
  if (end <= start) return;
  if (now >= end) show(start);
  playing = true;
  el('play').textContent = '❚❚';
  last = performance.now();
  touch();
}

function showNotices(told) {
  const box = el('notices');
  box.replaceChildren();
  for (const text of told) make('p', text, box);
  el('notices-button').hidden = !told.length;
  el('notices-button').textContent = `⚠ ${told.length}`;
}

// Frames are drawn when something changed, not all the time.
let waiting = false, times = [];
function touch() { dirty = true; if (!waiting) { waiting = true; requestAnimationFrame(loop); } }
function render() { sizeMarks(); three.renderer.render(three.scene, three.camera); dirty = false; }

// Slow graphics show coarser pictures while they play: first without shadows, then of fewer pixels.
const SLOW = 50, WINDOW = 8, COARSEST = 0.4; // ms a frame, frames looked at, pixels of the screen
let quality = 0, since = 0; // quality: how often the picture was made coarser
function adapt() {
  if (times.length - since < WINDOW) return;
  const some = times.slice(-WINDOW).sort((x, y) => x - y), ratio = three.renderer.getPixelRatio();
  since = times.length;
  if (some[WINDOW >> 1] <= SLOW || ratio <= COARSEST) return;
  quality += 1;
  if (quality === 1 && !three.plain) three.scene.traverse((o) => { if (o.isDirectionalLight) o.castShadow = false; });
  else three.renderer.setPixelRatio(Math.max(COARSEST, 0.6 * ratio));
}
function loop() {
  waiting = false;
  const t = performance.now();
  if (playing) {
    const next = now + ((t - last) / 1000) * speed;
    times.push(t - last); if (times.length > 600) times.shift();
    adapt();
    last = t;
    if (next >= end) { show(end); pause(); } else show(next);
    if (contacts.length) findContacts();
  }
  if (dirty) render();
  if (playing) touch();
}

function buildControls() {
  const slider = el('t');
  slider.min = start; slider.max = end;
  slider.oninput = () => { pause(); show(+slider.value); if (contacts.length) findContacts(); };
  el('play').onclick = () => (playing ? pause() : play());
  el('speed').onchange = () => { speed = +el('speed').value; };
  el('frames').onclick = () => setFrames(!shows.frames);
  el('plots-button').onclick = () => setPlots(!shows.plots);
  el('theme').onclick = () => setTheme(theme === 'light' ? 'dark' : 'light');
  el('shot').onclick = screenshot;
  el('home').onclick = resetCamera;
  el('follow').onclick = () => setFollow(!follows);
  el('follow').hidden = end <= start || !leader();
  el('help').onclick = () => { el('keys').hidden = !el('keys').hidden; };
  el('notices-button').onclick = () => { el('notices').hidden = !el('notices').hidden; };
  if (end <= start) for (const id of ['play', 't', 'now', 'speed']) el(id).hidden = true;
  const marks = el('marks');
  for (const event of runs.flatMap((run) => run.scene.events)) {
    const mark = make('button', '', marks);
    mark.style.left = `${(100 * (event.t - start)) / (end - start || 1)}%`;
    mark.title = `${event.name} at ${+event.t.toPrecision(4)} s`;
    mark.onclick = () => { pause(); show(event.t); };
  }
  const step = (n) => {
    pause();
    const t = runs[0].t, [k, , w] = between(t, now + 1e-9);
    show(t[Math.min(t.length - 1, Math.max(0, k + n + (n > 0 ? 0 : w > 1e-6 ? 1 : 0) + (w >= 1 ? 1 : 0)))]);
  };
  const keys = {
    ' ': () => (playing ? pause() : play()), ArrowRight: (e) => (e.shiftKey ? show(now + 0.1 * (end - start)) : step(1)),
    ArrowLeft: (e) => (e.shiftKey ? show(now - 0.1 * (end - start)) : step(-1)), Home: () => show(start), End: () => show(end),
    f: () => setFrames(!shows.frames), p: () => setPlots(!shows.plots), t: () => el('theme').click(), s: screenshot, r: resetCamera,
    c: () => setFollow(!follows),
    h: () => el('help').click(), '?': () => el('help').click(),
    '+': () => pace(1), '-': () => pace(-1),
  };
  const pace = (n) => {
    const box = el('speed');
    box.selectedIndex = Math.min(box.options.length - 1, Math.max(0, box.selectedIndex + n));
    box.onchange();
  };
  addEventListener('keydown', (event) => {
    const action = keys[event.key] ?? keys[event.key.toLowerCase()];
    if (!action || event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === 'SELECT') return;
    if (event.target.dataset?.joint && event.key.startsWith('Arrow')) return;
    event.preventDefault();
    action(event);
    if (contacts.length) findContacts();
  });
  addEventListener('resize', resize);
}

async function main() {
  const data = JSON.parse(el('scene').textContent), buffer = await unpacked('arrays');
  const asked = new URLSearchParams(location.search);
  const unread = await readEncoded(data, buffer);
  buildStage(data);
  build(data, buffer, unread);
  buildPlots();
  el('title').textContent = runs.map((run) => run.scene.title).join('  ·  ');
  runs.length > 1 && runs.forEach((run, k) => {
    const tag = make('span', `${k + 1}: ${run.scene.title}`, el('runs'));
    const tint = TINTS[k % TINTS.length] ?? TONES[1];
    tag.style.borderColor = `rgb(${tint.map((x) => Math.round(255 * x)).join(',')})`;
  });
  buildControls();
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  setTheme(THEMES[asked.get('theme')] ? asked.get('theme') : dark ? 'dark' : 'light');
  show(start);
  buildContacts();
  buildJoints();
  setFrames(asked.get('frames') === '1');
  setPlots(asked.get('plots') !== '0');
  resetCamera();
  setFollow(asked.get('follow') === '1');
  show(asked.has('t') ? +asked.get('t') : start);
  if (contacts.length) findContacts();
  render();
  // What tests and embedding pages ask: times, and where a point of the world is on the screen.
  window.lgcontrol = {
    show: (t) => { pause(); show(t); render(); },
    place: (name) => { const g = runs[0].bodies.find((x) => x.name === name).group; return [...g.position.toArray(), ...g.quaternion.toArray()]; },
    pixel: (point) => {
      three.camera.updateMatrixWorld();
      const p = V().set(...point).project(three.camera), w = el('view').clientWidth, h = el('view').clientHeight;
      return [((p.x + 1) / 2) * w, ((1 - p.y) / 2) * h];
    },
    get state() { return { now, playing, start, end, theme, speed, follows, ...shows, quality, plain: three.plain, pixels: [three.renderer.domElement.width, three.renderer.domElement.height], frameTimes: times, touching: el('touch').textContent || el('contacts')?.textContent || '' }; },
  };
  document.documentElement.dataset.ready = '1';
  if (!asked.has('t') && asked.get('play') !== '0' && end > start && data[0].play) play();
}

main().catch((error) => {
  make('pre', `This page cannot show its scene: ${error.message ?? error}`, document.body, 'failure');
  document.documentElement.dataset.ready = 'failed';
});
