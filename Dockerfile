# Postrider in one image: `docker run … postrider <command>`; without a command, the forwarder.
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Optional packages are Nodes for development (package.json): the image has its own.
RUN npm ci --omit=optional
COPY tsconfig.json tsconfig.build.json LICENSE README.md ./
COPY scripts scripts
COPY schemas schemas
COPY src src
RUN npm run build && npm prune --omit=dev --omit=optional

FROM node:24-slim
ENV NODE_ENV=production STORE_PATH=/var/lib/postrider
RUN mkdir /var/lib/postrider && chown node:node /var/lib/postrider && chmod 700 /var/lib/postrider
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist .
USER node
# The collector; the console; /metrics, /healthz and /readyz
EXPOSE 8080 8090 9464
ENTRYPOINT ["node", "src/main.js"]
CMD ["forwarder"]
