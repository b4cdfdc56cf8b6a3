// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    AccessControlDefaultAdminRules
} from "@openzeppelin/contracts/access/extensions/AccessControlDefaultAdminRules.sol";
import {AssetLedger} from "./AssetLedger.sol";
import {AssetTransfers} from "./AssetTransfers.sol";
import {
    NONE, MINTED, BOUND, ACTIVATED, CLAIMED, FLAGGED, RECYCLED,
    OWNER_FLAGS, REPORT_FLAGS, ALL_FLAGS, TAMPER,
    ADMIN_DELAY, RECYCLE_DELAY, ATTESTER_LIMIT, SHARED_IDS, COUNTED_IDS,
    ISSUER, BINDER, QA, ATTESTER, GUARDIAN, RECYCLER
} from "./Lifecycle.sol";

/// The registry holds the records of physical items and their lifecycle (spec §2.5, §3). It is fixed for ever: no proxy, no owner's
/// switch, no way to burn. The admin grants the roles; only the accounts named beside each function can change a record. There is one
/// admin at any time; its successor accepts after a delay (AccessControlDefaultAdminRules).
contract AssetRegistry is AssetTransfers, AccessControlDefaultAdminRules {
    /// The accounts that hold the roles from the first block on. Zero leaves a role empty; grantRole adds holders.
    struct Holders {
        address admin;
        address issuer;
        address binder;
        address qa;
        address attester;
        address guardian;
        address recycler;
    }

    bytes32 public constant ISSUER_ROLE = ISSUER;
    bytes32 public constant BINDER_ROLE = BINDER;
    bytes32 public constant QA_ROLE = QA;
    /// Signs claims after a tap. The chain cannot check a chip's MAC, so that it trusts this account.
    bytes32 public constant ATTESTER_ROLE = ATTESTER;
    bytes32 public constant GUARDIAN_ROLE = GUARDIAN;
    bytes32 public constant RECYCLER_ROLE = RECYCLER;

    /// An attester's actions of a day: `used` of `perDay`, which is zero for the default.
    struct Allowance {
        uint32 day;
        uint32 used;
        uint32 perDay;
    }

    mapping(uint256 tokenId => uint64 notBefore) private _recyclable;
    mapping(address attester => Allowance) private _allowances;

    bytes32 private constant CLAIM_TYPE = keccak256(
        "Claim(uint256 tokenId,address claimant,bytes32 tagHash,uint32 tapCounter,uint32 nonce,uint256 deadline)"
    );
    bytes32 private constant CONSENT_TYPE =
        keccak256("ClaimConsent(uint256 tokenId,address claimant,uint32 nonce,uint256 deadline)");
    bytes32 private constant RECYCLE_TYPE =
        keccak256("Recycle(uint256 tokenId,address owner,uint32 nonce,uint256 deadline)");

    constructor(Holders memory holders, string memory tokenBaseURI, string memory contractURI_)
        AccessControlDefaultAdminRules(ADMIN_DELAY, holders.admin)
    {
        _grantUnlessZero(ISSUER, holders.issuer);
        _grantUnlessZero(BINDER, holders.binder);
        _grantUnlessZero(QA, holders.qa);
        _grantUnlessZero(ATTESTER, holders.attester);
        _grantUnlessZero(GUARDIAN, holders.guardian);
        _grantUnlessZero(RECYCLER, holders.recycler);
        _tokenBaseURI = tokenBaseURI;
        _contractURI = contractURI_;
    }

    /// NONE to MINTED, under the next free id. ISSUER.
    function mint(address to, bytes32 metadata) external onlyRole(ISSUER) returns (uint256 tokenId) {
        tokenId = _nextId(_lastId);
        _lastId = uint64(tokenId);
        _addSupply(to, 1);
        _mint(to, tokenId, metadata);
    }

    /// As mint, one token for each hash. ISSUER.
    function mintBatch(address to, bytes32[] calldata metadata)
        external
        onlyRole(ISSUER)
        returns (uint256[] memory tokenIds)
    {
        tokenIds = new uint256[](metadata.length);
        uint64 lastId = _lastId;
        for (uint256 i = 0; i < metadata.length; ++i) {
            lastId = _nextId(lastId);
            tokenIds[i] = lastId;
            _mint(to, lastId, metadata[i]);
        }
        _lastId = lastId;
        _addSupply(to, uint64(metadata.length));
    }

    /// As mint, under an id of the caller's choice, for importers. ISSUER.
    function mintWithId(address to, uint256 tokenId, bytes32 metadata) external onlyRole(ISSUER) {
        if (_refused(tokenId)) revert TokenIdRefused(tokenId);
        if (_assets[tokenId].state != NONE) revert TokenIdTaken(tokenId);
        if (tokenId > _highestImport && tokenId < SHARED_IDS) _highestImport = uint64(tokenId);
        _addSupply(to, 1);
        _mint(to, tokenId, metadata);
    }

    /// Replaces the metadata hash until the item is claimed. ISSUER.
    function setMetadataHash(uint256 tokenId, bytes32 metadataHash_) external onlyRole(ISSUER) {
        uint8 state = _existing(tokenId).state;
        if (state > ACTIVATED) revert WrongState(tokenId, state);
        _metadataHashes[tokenId] = metadataHash_;
        emit MetadataHashSet(tokenId, metadataHash_);
        emit MetadataUpdate(tokenId);
    }

    /// MINTED to BOUND. A commitment serves one token and no other, for ever. BINDER.
    function bindTag(uint256 tokenId, bytes32 tagHash) external onlyRole(BINDER) {
        Asset memory asset = _inState(tokenId, MINTED);
        if (tagHash == 0) revert ZeroTag();
        uint256 holder = _tokenByTag[tagHash];
        if (holder != 0) revert TagTaken(tagHash, holder);
        _tokenByTag[tagHash] = tokenId;
        _tagByToken[tokenId] = tagHash;
        emit TagBound(tokenId, tagHash);
        _storeState(tokenId, asset, BOUND, msg.sender);
    }

    /// BOUND to ACTIVATED. QA.
    function activate(uint256 tokenId) external onlyRole(QA) {
        _storeState(tokenId, _inState(tokenId, BOUND), ACTIVATED, msg.sender);
    }

    /// ACTIVATED to CLAIMED, and to a new owner. Anyone submits it with the Claim that an ATTESTER signed after a tap;
    /// the claimant is the sender, or has signed ClaimConsent.
    function claim(
        uint256 tokenId,
        address claimant,
        uint32 tapCounter,
        uint256 deadline,
        address attester,
        bytes calldata attesterSig,
        bytes calldata claimantSig
    ) external {
        Asset memory asset = _inState(tokenId, ACTIVATED);
        if (claimant == address(0)) revert ZeroAddress();
        _checkDeadline(deadline);
        _checkRole(ATTESTER, attester);
        _count(attester);
        uint32 nonce = _pending[tokenId].nonce;
        _checkSignature(attester, _claimHash(tokenId, claimant, tapCounter, nonce, deadline), attesterSig);
        if (msg.sender != claimant) {
            bytes32 consent = keccak256(abi.encode(CONSENT_TYPE, tokenId, claimant, nonce, deadline));
            _checkSignature(claimant, consent, claimantSig);
        }
        _drop(tokenId, nonce + 1, attester);
        address from = asset.owner;
        asset.owner = claimant;
        _storeState(tokenId, asset, CLAIMED, attester);
        _handedOver(tokenId, from, claimant);
    }

    /// CLAIMED back to ACTIVATED: an item that came back to the one who issued it. ISSUER that is the owner.
    function restock(uint256 tokenId) external onlyRole(ISSUER) {
        Asset memory asset = _inState(tokenId, CLAIMED);
        if (msg.sender != asset.owner) revert NotOwner(tokenId, msg.sender);
        _drop(tokenId, _pending[tokenId].nonce + 1, msg.sender);
        _storeState(tokenId, asset, ACTIVATED, msg.sender);
    }

    /// Sets flag bits. A report bit leads from BOUND, ACTIVATED or CLAIMED to FLAGGED, or joins those already set.
    /// Report bits: GUARDIAN, or for LOST and STOLEN the owner of a claimed item. TAMPER: ATTESTER.
    function flag(uint256 tokenId, uint8 bits, bytes32 reasonHash) external {
        Asset memory asset = _flaggable(tokenId, bits);
        if (asset.flags & bits == bits) revert FlagsAlreadySet(tokenId, bits);
        asset.flags |= bits;
        emit FlagsChanged(tokenId, asset.flags, msg.sender, reasonHash);
        if (bits & REPORT_FLAGS != 0 && asset.state != FLAGGED) {
            asset.reserved = asset.state;
            _storeState(tokenId, asset, FLAGGED, msg.sender);
        } else {
            _store(tokenId, asset);
        }
    }

    /// Clears flag bits that are set; clearing the last report bit leads back to the state before FLAGGED.
    /// An account that may set a bit may clear it.
    function resolve(uint256 tokenId, uint8 bits, bytes32 reasonHash) external {
        Asset memory asset = _flaggable(tokenId, bits);
        if (asset.flags & bits != bits) revert FlagsNotSet(tokenId, bits);
        asset.flags &= ~bits;
        emit FlagsChanged(tokenId, asset.flags, msg.sender, reasonHash);
        if (asset.state == FLAGGED && asset.flags & REPORT_FLAGS == 0) {
            uint8 before = uint8(asset.reserved);
            asset.reserved = 0;
            if (before == CLAIMED) delete _recyclable[tokenId];
            _storeState(tokenId, asset, before, msg.sender);
        } else {
            _store(tokenId, asset);
        }
    }

    /// Starts the notice after which a claimed item that was reported may be recycled. It ends when the last report bit is
    /// cleared. RECYCLER that is GUARDIAN.
    function announceRecycle(uint256 tokenId) external onlyRole(RECYCLER) onlyRole(GUARDIAN) {
        Asset memory asset = _inState(tokenId, FLAGGED);
        if (uint8(asset.reserved) != CLAIMED) revert WrongState(tokenId, uint8(asset.reserved));
        uint64 notBefore = _recyclable[tokenId];
        if (notBefore != 0) revert RecycleLocked(tokenId, notBefore);
        notBefore = uint64(block.timestamp) + RECYCLE_DELAY;
        _recyclable[tokenId] = notBefore;
        emit RecycleAnnounced(tokenId, notBefore, msg.sender);
    }

    /// Second from which a reported, claimed item may be recycled; zero when it was not announced.
    function recyclableFrom(uint256 tokenId) external view returns (uint64 notBefore) {
        return _recyclable[tokenId];
    }

    /// To RECYCLED, the end. From CLAIMED only the owner; from FLAGGED an account that is RECYCLER and GUARDIAN, and for
    /// a claimed item after its announcement; from the earlier states RECYCLER. Owner, flags and tag stay as history.
    function recycle(uint256 tokenId) external {
        Asset memory asset = _existing(tokenId);
        if (asset.state == RECYCLED) revert WrongState(tokenId, RECYCLED);
        if (asset.state == CLAIMED) {
            if (msg.sender != asset.owner) revert NotOwner(tokenId, msg.sender);
        } else {
            _checkRole(RECYCLER);
            if (asset.state == FLAGGED) {
                _checkRole(GUARDIAN);
                if (uint8(asset.reserved) == CLAIMED) _checkNotice(tokenId);
            }
        }
        _recycle(tokenId, asset, msg.sender);
    }

    /// CLAIMED to RECYCLED with the owner's Recycle.
    function recycleBySig(uint256 tokenId, uint256 deadline, bytes calldata signature) external {
        Asset memory asset = _inState(tokenId, CLAIMED);
        _checkDeadline(deadline);
        uint32 nonce = _pending[tokenId].nonce;
        _checkSignature(
            asset.owner, keccak256(abi.encode(RECYCLE_TYPE, tokenId, asset.owner, nonce, deadline)), signature
        );
        _recycle(tokenId, asset, asset.owner);
    }

    /// Sets the base URL of token documents, to which the decimal id is appended. DEFAULT_ADMIN.
    function setTokenBaseURI(string calldata uri) external onlyRole(DEFAULT_ADMIN_ROLE) {
        _tokenBaseURI = uri;
        emit BatchMetadataUpdate(0, type(uint256).max);
    }

    /// DEFAULT_ADMIN.
    function setContractURI(string calldata uri) external onlyRole(DEFAULT_ADMIN_ROLE) {
        _contractURI = uri;
        emit ContractURIUpdated();
    }

    /// Claims and TAMPER marks that an attester may sign or make in a day; zero restores the default. DEFAULT_ADMIN.
    /// To stop an attester, revoke its role.
    function setAttesterLimit(address attester, uint32 perDay) external onlyRole(DEFAULT_ADMIN_ROLE) {
        _allowances[attester].perDay = perDay;
        emit AttesterLimitSet(attester, perDay);
    }

    /// The most that an attester may do in a day, and what it did today.
    function attesterAllowance(address attester) external view returns (uint32 perDay, uint32 used) {
        Allowance memory allowance = _today(attester);
        return (allowance.perDay, allowance.used);
    }

    /// The version of this contract. Version 1 has no such function.
    function version() external pure returns (uint256) {
        return 2;
    }

    function supportsInterface(bytes4 interfaceId)
        public
        view
        override(AssetLedger, AccessControlDefaultAdminRules)
        returns (bool)
    {
        return super.supportsInterface(interfaceId);
    }

    /// The admin's place is never left empty.
    function _beginDefaultAdminTransfer(address newAdmin) internal override {
        if (newAdmin == address(0)) revert ZeroAddress();
        super._beginDefaultAdminTransfer(newAdmin);
    }

    function _grantUnlessZero(bytes32 role, address account) private {
        if (account != address(0)) _grantRole(role, account);
    }

    /// The first taken id ends the count before the imports. It goes on after the highest import, where all ids are free.
    function _nextId(uint64 lastId) private view returns (uint64 tokenId) {
        tokenId = lastId + 1;
        if (tokenId < SHARED_IDS && _assets[tokenId].state != NONE) tokenId = _highestImport + 1;
        if (tokenId == SHARED_IDS) tokenId = COUNTED_IDS;
    }

    function _addSupply(address to, uint64 count) private {
        _supply += count;
        _balances[to] += count;
    }

    /// Writes and announces a new record; supply and balance are the caller's, once for a whole batch.
    function _mint(address to, uint256 tokenId, bytes32 metadata) private {
        if (to == address(0)) revert ZeroAddress();
        if (metadata != 0) _metadataHashes[tokenId] = metadata;
        emit Transfer(address(0), to, tokenId);
        emit AssetMinted(tokenId, to, metadata);
        _storeState(tokenId, Asset(to, 0, NONE, 0, 0), MINTED, msg.sender);
        emit Locked(tokenId);
    }

    /// 0 means "no token" in getTokenByTag. The others would make the 128 bytes that a gateway hashes and signs,
    /// abi.encode(tokenId, state, chainId, timestamp), an unsigned typed transaction (EIP-2718): a type byte below
    /// 0x80, then an RLP list of 125 bytes; or, for an untyped one, a list of 126. The last range is the counter's own.
    function _refused(uint256 tokenId) private pure returns (bool) {
        return tokenId == 0 || (tokenId >> 232) & 0x80ffff == 0x00f87d || tokenId >> 240 == 0xf87e
            || (tokenId >= COUNTED_IDS && tokenId <= type(uint64).max);
    }

    function _checkDeadline(uint256 deadline) private view {
        if (block.timestamp > deadline) revert SignatureExpired(deadline);
    }

    function _claimHash(uint256 tokenId, address claimant, uint32 tapCounter, uint32 nonce, uint256 deadline)
        private
        view
        returns (bytes32)
    {
        return keccak256(
            abi.encode(CLAIM_TYPE, tokenId, claimant, _tagByToken[tokenId], tapCounter, nonce, deadline)
        );
    }

    /// Counts one action of an attester, or refuses it when the day's are used up.
    function _count(address attester) private {
        Allowance memory allowance = _today(attester);
        if (allowance.used >= allowance.perDay) revert AttesterLimitReached(attester, allowance.perDay);
        ++allowance.used;
        _allowances[attester] = allowance;
    }

    function _today(address attester) private view returns (Allowance memory allowance) {
        allowance = _allowances[attester];
        uint32 day = uint32(block.timestamp / 1 days);
        if (allowance.day != day) (allowance.day, allowance.used) = (day, 0);
        if (allowance.perDay == 0) allowance.perDay = ATTESTER_LIMIT;
    }

    function _checkNotice(uint256 tokenId) private view {
        uint64 notBefore = _recyclable[tokenId];
        if (notBefore == 0 || block.timestamp < notBefore) revert RecycleLocked(tokenId, notBefore);
    }

    /// The record, if the sender may set and clear these bits on it.
    function _flaggable(uint256 tokenId, uint8 bits) private returns (Asset memory asset) {
        asset = _existing(tokenId);
        if (bits == 0 || bits & ~ALL_FLAGS != 0) revert InvalidFlags(bits);
        if (asset.state < BOUND || asset.state == RECYCLED) revert WrongState(tokenId, asset.state);
        if (bits & TAMPER != 0) {
            _checkRole(ATTESTER);
            _count(msg.sender);
        }
        if (bits & REPORT_FLAGS != 0 && !hasRole(GUARDIAN, msg.sender)) {
            uint8 held = asset.state == FLAGGED ? uint8(asset.reserved) : asset.state;
            bool ownerMay = msg.sender == asset.owner && held == CLAIMED && bits & REPORT_FLAGS & ~OWNER_FLAGS == 0;
            if (!ownerMay) revert FlagsNotAllowed(msg.sender, bits);
        }
    }

    function _recycle(uint256 tokenId, Asset memory asset, address actor) private {
        _drop(tokenId, _pending[tokenId].nonce, actor);
        _storeState(tokenId, asset, RECYCLED, actor);
    }
}
