# Postrider in one image: `docker run … postrider <command>`; without a command, the forwarder.
# To pin the base image, give the digest that you have checked: --build-arg NODE_DIGEST=sha256:…
ARG NODE_DIGEST=
FROM node:24-slim${NODE_DIGEST:+@$NODE_DIGEST} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# With optional packages: esbuild's program, which is not in the image, and the programs that read compressed records.
RUN npm ci
COPY tsconfig.json tsconfig.build.json LICENSE README.md ./
COPY scripts scripts
COPY schemas schemas
COPY presets presets
COPY ops/systemd ops/systemd
COPY src src
# Names the commit in the version, between two releases: --build-arg COMMIT=$(git rev-parse HEAD)
ARG COMMIT=
# The packages with Node itself are for a checkout.
RUN npm run build && npm prune --omit=dev && rm -rf node_modules/node-* node_modules/.bin/node

FROM node:24-slim${NODE_DIGEST:+@$NODE_DIGEST}
ENV NODE_ENV=production STORE_PATH=/var/lib/postrider
RUN mkdir /var/lib/postrider && chown node:node /var/lib/postrider && chmod 700 /var/lib/postrider
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist .
# `node`, by number, so that Kubernetes can see that it is not root.
USER 1000:1000
# The collector; the console; /metrics, /healthz and /readyz
EXPOSE 8080 8090 9464
HEALTHCHECK --interval=10s --timeout=5s --retries=3 --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.METRICS_PORT || 9464}/readyz`).then(({ ok }) => process.exit(Number(!ok)), () => process.exit(1))"]
ENTRYPOINT ["node", "src/main.js"]
CMD ["forwarder"]
